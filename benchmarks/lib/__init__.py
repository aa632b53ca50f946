# SPDX-License-Identifier: BSD-3-Clause
"""Shared code of the benchmarks: processes, namespaces, contenders, statistics and reports."""
