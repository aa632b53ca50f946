# SPDX-License-Identifier: BSD-3-Clause
"""pyverbs_suite.py CHECKOUT OUT MODULE...: runs test modules of rdma-core's pyverbs, and writes {test: [outcome, reason]} to OUT."""
import importlib
import json
import sys
import unittest


class Outcomes(unittest.TextTestResult):
    """Writes after every test, so that a crash or a hang loses none of those before it."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.outcomes = {}

    def _note(self, test, outcome, reason=""):
        self.outcomes[test.id().removeprefix("tests.test_")] = [outcome, reason]
        with open(OUT, "w", encoding="utf-8") as f:
            json.dump(self.outcomes, f)

    def startTest(self, test):
        super().startTest(test)
        self._note(test, "unfinished")

    def addSuccess(self, test):
        super().addSuccess(test)
        self._note(test, "ok")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._note(test, "skipped", str(reason))

    def addError(self, test, err):
        super().addError(test, err)
        self._note(test, "error", self._exc_info_to_string(err, test))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._note(test, "error", self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self._note(test, "error", self._exc_info_to_string(err, test))


def main():
    sys.path[:0] = [CHECKOUT, CHECKOUT + "/tests"]
    sys.argv[1:] = ["--dev", "uroce0", "--gid", "0"]
    importlib.import_module("args_parser").parser.parse_args()
    loader = unittest.defaultTestLoader
    suite = unittest.TestSuite(loader.loadTestsFromModule(importlib.import_module("tests.test_" + m)) for m in MODULES)
    unittest.TextTestRunner(resultclass=Outcomes, verbosity=2).run(suite)


CHECKOUT, OUT, *MODULES = sys.argv[1:]
main()
