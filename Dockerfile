# `docker build -t inference-benchmarker .`; docs/how-to/docker.md says how it is used.
FROM python:3.13-slim-bookworm AS build
COPY . /source
RUN sh /source/delivery/image.sh

FROM python:3.13-slim-bookworm
COPY --from=build /image /
# A user without a name has no home; what keeps a cache (matplotlib) looks for one.
ENV PATH=/opt/benchmark/bin:$PATH HOME=/tmp
WORKDIR /runs
USER 1000:1000
ENTRYPOINT ["benchmark"]
