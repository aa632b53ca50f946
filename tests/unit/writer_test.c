/* SPDX-License-Identifier: BSD-3-Clause */
#include "writer.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/writer_test.XXXXXX", path[64];

static void make_dir(void)
{
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
}

static void remove_dir(void)
{
	unlink(path);
	rmdir(dir);
}

static void put(struct writer *w, const char *text)
{
	writer_put(w, strdup(text), strlen(text));
}

static void expect_content(const char *text)
{
	char found[64] = "";
	int fd = open(path, O_RDONLY);

	cr_assert_geq(fd, 0);
	cr_assert_geq(read(fd, found, sizeof(found) - 1), 0);
	close(fd);
	cr_expect_str_eq(found, text);
}

TestSuite(writer, .init = make_dir, .fini = remove_dir);

/* SWITCH-FILES-01 */
Test(writer, the_last_text_is_there_at_the_end)
{
	struct writer *w = writer_start(path, 0600);
	struct stat st;
	char text[16];

	cr_assert_not_null(w);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "%u", i);
		put(w, text);
	}
	cr_expect_eq(writer_end(w), 0);
	expect_content("999");
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0600);
}

Test(writer, without_a_text_no_file_is_made)
{
	struct writer *w = writer_start(path, 0600);

	cr_assert_not_null(w);
	cr_expect_eq(writer_end(w), 0);
	cr_expect_eq(access(path, F_OK), -1);
}

Test(writer, a_directory_that_is_not_there_is_told)
{
	struct writer *w = writer_start("/nonexistent/file", 0600);

	cr_assert_not_null(w);
	put(w, "text");
	cr_expect_eq(writer_end(w), ENOENT);
}
