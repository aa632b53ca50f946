/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_TSAN_CRITERION_H
#define TESTS_TSAN_CRITERION_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * What the tests of the public functions use of Criterion, for ThreadSanitizer: Criterion shares an arena with
 * the processes of its tests at an address where the sanitizer has its shadow, and does not start. Each test
 * runs in a process of its own here, too; the first failure or race ends it.
 *
 * A program includes this once. `PROGRAM NAME...` runs tests whose names have one of those in them.
 */
struct mini_test {
	const char *name;
	void (*fn)(void);
	int exit_code;
	int timeout;
	void (*init)(void), (*fini)(void);
	int signal;
	struct mini_test *next;
};

static struct mini_test *mini_tests;

#define Test(suite, test, ...)                                                                     \
	static void mini_##suite##_##test(void);                                                   \
	static struct mini_test mini_test_##suite##_##test = {                                     \
		.name = #suite "/" #test, .fn = mini_##suite##_##test, ##__VA_ARGS__};             \
	__attribute__((constructor)) static void mini_add_##suite##_##test(void)                   \
	{                                                                                          \
		mini_test_##suite##_##test.next = mini_tests;                                      \
		mini_tests = &mini_test_##suite##_##test;                                          \
	}                                                                                          \
	static void mini_##suite##_##test(void)

#define MINI_CHECK(cond, ...)                                                                      \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                 \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

#define cr_assert(cond, ...)		MINI_CHECK(cond)
#define cr_assert_not(cond, ...)	MINI_CHECK(!(cond))
#define cr_assert_eq(a, b, ...)		MINI_CHECK((a) == (b))
#define cr_assert_neq(a, b, ...)	MINI_CHECK((a) != (b))
#define cr_assert_lt(a, b, ...)		MINI_CHECK((a) < (b))
#define cr_assert_leq(a, b, ...)	MINI_CHECK((a) <= (b))
#define cr_assert_gt(a, b, ...)		MINI_CHECK((a) > (b))
#define cr_assert_geq(a, b, ...)	MINI_CHECK((a) >= (b))
#define cr_assert_null(p, ...)		MINI_CHECK((p) == NULL)
#define cr_assert_not_null(p, ...)	MINI_CHECK((p) != NULL)
#define cr_assert_str_eq(a, b, ...)	MINI_CHECK(strcmp(a, b) == 0)
#define cr_assert_arr_eq(a, b, n, ...)	MINI_CHECK(memcmp(a, b, n) == 0)
#define cr_assert_arr_neq(a, b, n, ...) MINI_CHECK(memcmp(a, b, n) != 0)
#define cr_expect			cr_assert
#define cr_expect_not			cr_assert_not
#define cr_expect_eq			cr_assert_eq
#define cr_expect_neq			cr_assert_neq
#define cr_expect_lt			cr_assert_lt
#define cr_expect_leq			cr_assert_leq
#define cr_expect_gt			cr_assert_gt
#define cr_expect_geq			cr_assert_geq
#define cr_expect_null			cr_assert_null
#define cr_expect_not_null		cr_assert_not_null
#define cr_expect_str_eq		cr_assert_str_eq
#define cr_expect_arr_eq		cr_assert_arr_eq
#define cr_assert_fail(...)		MINI_CHECK(false)

static bool mini_wanted(const struct mini_test *t, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strstr(t->name, argv[i]))
			return true;
	return argc < 2;
}

static bool mini_run(const struct mini_test *t)
{
	pid_t child = fork();
	int status = -1;

	if (!child) {
		if (t->init)
			t->init();
		t->fn();
		if (t->fini)
			t->fini();
		fflush(NULL);
		_exit(0);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) && WEXITSTATUS(status) == t->exit_code;
}

int main(int argc, char **argv)
{
	unsigned run = 0, failed = 0;

	for (const struct mini_test *t = mini_tests; t; t = t->next)
		if (mini_wanted(t, argc, argv)) {
			bool ok = mini_run(t);

			run++;
			failed += !ok;
			printf("%s: %s\n", ok ? "passed" : "FAILED", t->name);
			fflush(stdout);
		}
	printf("%u tests, %u failed\n", run, failed);
	return !run || failed;
}

#endif
