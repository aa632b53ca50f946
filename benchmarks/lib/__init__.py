# SPDX-License-Identifier: BSD-3-Clause
"""What the benchmarks share: processes, namespaces, contenders, statistics and reports."""
