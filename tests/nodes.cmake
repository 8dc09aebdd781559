# SPDX-License-Identifier: MIT
#
# What the harness measures with, and cases that come from elsewhere: the oracle against long
# double (test_oracle), and the public operations against cases in the manner of ONNX's node tests,
# made by tools/make_nodes.py (test_nodes).
isobit_test_program(test_oracle test_oracle.c)
isobit_test(oracle test_oracle)
isobit_test_program(test_nodes test_nodes.c)
isobit_test(nodes test_nodes)
