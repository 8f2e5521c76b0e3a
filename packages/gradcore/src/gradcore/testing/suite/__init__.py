"""The conformance suite: what every backend must do, as tests. No code of a backend's author is needed.

    pytest --pyargs gradcore.testing.suite --gradcore-backend NAME

It promises, for each operation of the Protocol and each derived one: shape, dtype and values against an independent
float64 reference; NaN and infinity where they belong; operands unchanged; equal bits when repeated. It does not test
gradient rules (gradcore's own tests do, once for all backends), speed, or anything beyond one device and one thread.

Next: test_elementwise.py, the typical file; ../cases/, where the cases and references are.
"""
