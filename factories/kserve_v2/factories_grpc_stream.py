"""Open Inference Protocol over gRPC as a stream: ModelStreamInfer, for LLMs and other models that answer in pieces.

Measures TTFT and ITL, over the answers that have an output; errors are counted by gRPC's status, as `RpcError
UNAVAILABLE`. An error within the stream and a stream without an output are failed requests. Works with Triton
(port 8001; decoupled models, its vLLM and TensorRT-LLM backends) and MLServer (8081); on EKS, OpenShift AI, EC2. Needs
`pip install grpcio protobuf` in the environment of `benchmark`. Set the address and the model's input below.
"""

import json
import os
import random
from itertools import cycle

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from grpc.experimental.gevent import init_gevent

ADDRESS = os.environ.get("GRPC_ADDRESS", "127.0.0.1:8001")  # the server's address
MODEL = "demo"  # its name on the server
TRITON = True  # False: MLServer, whose answers come without Triton's envelope
SAMPLING = {"max_tokens": "64", "temperature": "0.7"}  # the parameters of Triton's vLLM
PROMPT_WORDS = 200  # of a prompt; a word is a token to most tokenizers
TIMEOUT_S = 60  # of a whole stream
# All streams of a channel share one connection. Behind a load balancer they may all reach the same server, and beyond
# what it takes at a time of one connection (AWS's ALB: 128) they wait here, which counts as latency. Have at most 8 in
# a worker: each that waits for answers occupies one of the ten threads that gevent keeps.
CHANNELS = 1
OPTIONS = (
    ("grpc.enable_retries", 0),  # a request that failed has failed
    ("grpc.use_local_subchannel_pool", 1),  # a connection for each channel
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
)

WORDS = ("time", "year", "people", "way", "day", "thing", "life", "child", "world", "school", "state", "family")

# What is sent and looked at here of the protocol's grpc_service.proto. Stubs that were generated from it serve as well.
PROTOCOL = """
name: "kserve_v2_stream.proto" package: "inference" syntax: "proto3"
message_type {
  name: "InferTensorContents"
  field { name: "bytes_contents" number: 8 type: TYPE_BYTES label: LABEL_REPEATED }
}
message_type {
  name: "Tensor"
  field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "datatype" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "shape" number: 3 type: TYPE_INT64 label: LABEL_REPEATED }
  field { name: "contents" number: 5 type: TYPE_MESSAGE type_name: "InferTensorContents" label: LABEL_OPTIONAL }
}
message_type {
  name: "ModelInferRequest"
  field { name: "model_name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "model_version" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "inputs" number: 5 type: TYPE_MESSAGE type_name: "Tensor" label: LABEL_REPEATED }
  field { name: "raw_input_contents" number: 7 type: TYPE_BYTES label: LABEL_REPEATED }
}
message_type {
  name: "ModelInferResponse"
  field { name: "outputs" number: 5 type: TYPE_MESSAGE type_name: "Tensor" label: LABEL_REPEATED }
  field { name: "raw_output_contents" number: 6 type: TYPE_BYTES label: LABEL_REPEATED }
}
message_type {
  name: "ModelStreamInferResponse"
  field { name: "error_message" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "infer_response" number: 2 type: TYPE_MESSAGE type_name: "ModelInferResponse" label: LABEL_OPTIONAL }
}
"""


DOUBT = " (is TRITON right, in this file?)"


class StreamError(Exception):
    """The stream reported an error, or had no output in it."""


def tensors(prompt):
    """Name, datatype, shape and bytes of each input. These are what Triton's vLLM takes; MLServer has one of yours."""
    if not TRITON:
        return [("prompt", "BYTES", (1,), text(prompt))]
    return [
        ("text_input", "BYTES", (1,), text(prompt)),
        ("stream", "BOOL", (1,), b"\x01"),
        ("sampling_parameters", "BYTES", (1,), text(json.dumps(SAMPLING))),
    ]


def invoke_factory(endpoint_name=None):
    """Once in each worker process. With TLS: grpc.secure_channel(ADDRESS, grpc.ssl_channel_credentials(), OPTIONS)."""
    init_gevent()  # before any channel; without it, a request would hold up all others
    channels = [grpc.insecure_channel(ADDRESS, OPTIONS) for _ in range(CHANNELS)]
    methods = cycle([channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer") for channel in channels])
    answer_class = message_classes()["ModelStreamInferResponse" if TRITON else "ModelInferResponse"]

    def invoke(payload):
        call = next(methods)(iter([payload]), timeout=TIMEOUT_S)
        pieces = 0
        try:
            for message in call:
                if piece := output(answer_class.FromString(message)):
                    pieces += 1
                    yield piece
        finally:
            call.cancel()  # a stream that benchmark gives up; one that is over stays as it is
        if not pieces:
            raise StreamError(f"the stream had no output in it{DOUBT}")

    return invoke


def output(answer):
    """The first output's bytes: none of an empty text, nor of the empty message by which Triton may end a stream."""
    if TRITON:
        if message := answer.error_message:  # MLServer has the model's name in its place
            raise StreamError(f"the server reported an error: {message}{DOUBT if message == MODEL else ''}")
        answer = answer.infer_response
    if not answer.outputs:
        return b""
    is_text = answer.outputs[0].datatype == "BYTES"
    if answer.raw_output_contents:
        return answer.raw_output_contents[0][4 if is_text else 0 :]
    contents = answer.outputs[0].contents
    return b"".join(contents.bytes_contents) if is_text else contents.SerializeToString()


def text(content):
    """A text as the bytes of a tensor: its length before it."""
    return len(content.encode()).to_bytes(4, "little") + content.encode()


def payload_factory():
    """Prompts that differ from their first word on, in every wave: none comes from the server's prefix cache."""
    chosen = random.Random(0)
    texts = cycle([" ".join(chosen.choices(WORDS, k=PROMPT_WORDS)) for _ in range(100)])
    request_class = message_classes()["ModelInferRequest"]

    def build():
        inputs = tensors(f"{os.urandom(8).hex()} {next(texts)}")
        described = [{"name": name, "datatype": datatype, "shape": shape} for name, datatype, shape, _ in inputs]
        contents = [content for *_, content in inputs]
        return request_class(model_name=MODEL, inputs=described, raw_input_contents=contents).SerializeToString()

    return {"pre_computed": False, "input": build}


def message_classes():
    pool = descriptor_pool.DescriptorPool()
    file = text_format.Parse(PROTOCOL, descriptor_pb2.FileDescriptorProto())
    pool.AddSerializedFile(file.SerializeToString())
    names = [message.name for message in file.message_type]
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"inference.{name}")) for name in names}
