"""Open Inference Protocol (KServe v2) over gRPC: tensors as bytes.

Measures the time of a whole answer; errors are counted by gRPC's status, as `RpcError UNAVAILABLE`. Works with Triton
(port 8001), MLServer (8081) and KServe's own runtimes; on EKS, OpenShift AI, EC2. Needs `pip install grpcio protobuf`
in the environment of `benchmark`. Set the address and the model's input below.
"""

import os
from itertools import cycle

import grpc
import numpy
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from grpc.experimental.gevent import init_gevent

ADDRESS = os.environ.get("GRPC_ADDRESS", "127.0.0.1:8001")  # the server's address
MODEL = "demo"  # its name on the server
INPUT = "input"  # the name of the input
DATATYPE = "FP32"  # of it; the tensors are made of 32-bit floats
SHAPE = (1, 128)  # of it
TIMEOUT_S = 60  # of a request
# All requests of a channel share one connection. Behind a load balancer they may all reach the same server, and beyond
# what it takes at a time of one connection (AWS's ALB: 128) they wait here, which counts as latency. Have at most 8 in
# a worker: each that waits for answers occupies one of the ten threads that gevent keeps.
CHANNELS = 1
OPTIONS = (
    ("grpc.enable_retries", 0),  # a request that failed has failed
    ("grpc.use_local_subchannel_pool", 1),  # a connection for each channel
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
)

# What is sent here of the protocol's grpc_service.proto. Stubs that were generated from it serve as well.
PROTOCOL = """
name: "kserve_v2.proto" package: "inference" syntax: "proto3"
message_type {
  name: "InferInputTensor"
  field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "datatype" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "shape" number: 3 type: TYPE_INT64 label: LABEL_REPEATED }
}
message_type {
  name: "ModelInferRequest"
  field { name: "model_name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "model_version" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "inputs" number: 5 type: TYPE_MESSAGE type_name: "InferInputTensor" label: LABEL_REPEATED }
  field { name: "raw_input_contents" number: 7 type: TYPE_BYTES label: LABEL_REPEATED }
}
"""


def invoke_factory(endpoint_name=None):
    """Once in each worker process. With TLS: grpc.secure_channel(ADDRESS, grpc.ssl_channel_credentials(), OPTIONS)."""
    init_gevent()  # before any channel; without it, a request would hold up all others
    channels = [grpc.insecure_channel(ADDRESS, OPTIONS) for _ in range(CHANNELS)]
    methods = cycle([channel.unary_unary("/inference.GRPCInferenceService/ModelInfer") for channel in channels])

    def invoke(payload):
        # A call without `future` would wait in one of gevent's ten threads: ten slow answers would hold up the rest.
        call = next(methods).future(payload, timeout=TIMEOUT_S)
        try:
            return call.result()  # a ModelInferResponse, as bytes
        finally:
            call.cancel()  # a request that benchmark gives up; one that is over stays as it is

    return invoke


def payload_factory():
    """Once in each worker process: 100 different tensors, as the bytes to send."""
    request, numbers = request_class(), numpy.random.default_rng(0)
    tensor = {"name": INPUT, "datatype": DATATYPE, "shape": SHAPE}
    contents = [numbers.random(SHAPE, numpy.float32).tobytes() for _ in range(100)]
    requests = [request(model_name=MODEL, inputs=[tensor], raw_input_contents=[content]) for content in contents]
    return {"pre_computed": True, "input": [each.SerializeToString() for each in requests]}


def request_class():
    pool = descriptor_pool.DescriptorPool()
    file = text_format.Parse(PROTOCOL, descriptor_pb2.FileDescriptorProto())
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("inference.ModelInferRequest"))
