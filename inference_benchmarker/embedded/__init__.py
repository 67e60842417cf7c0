"""The parts of the embedded endpoint, which answers requests at the instants that a model computes.

``config`` has its properties. ``queueing`` and ``llm`` are the models, of which ``aws.fleet`` makes the one that is
configured; another kind of endpoint is another model with the same operations. ``protocols`` has the words of answers,
``http`` the connections, ``aws`` and ``scaling`` what AWS adds, ``log`` what it saw; ``endpoint`` puts all together.
"""
