/* SPDX-License-Identifier: BSD-3-Clause */
#include "file/replace_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

static char dir[] = "/tmp/replace_file_test.XXXXXX", path[64], made[80], other[64];

static void make_dir(void)
{
	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	snprintf(made, sizeof(made), "%s.new", path);
	snprintf(other, sizeof(other), "%s/other", dir);
}

static void remove_dir(void)
{
	unlink(path);
	unlink(other);
	rmdir(path);
	cr_assert_eq(rmdir(dir), 0, "nothing else is left");
}

TestSuite(replace_file, .init = make_dir, .fini = remove_dir);

static void expect_content(const char *file, const char *text)
{
	char found[64] = "";
	FILE *f = fopen(file, "r");

	cr_assert_not_null(f);
	cr_assert_leq(fread(found, 1, sizeof(found) - 1, f), sizeof(found) - 1);
	fclose(f);
	cr_expect_str_eq(found, text);
}

static unsigned mode_of(const char *file)
{
	struct stat st;

	cr_assert_eq(stat(file, &st), 0);
	return st.st_mode & 0777;
}

Test(replace_file, a_file_is_made_and_replaced_with_its_permissions)
{
	umask(0);
	cr_expect_eq(ur_replace_file(path, "one", 3), 0);
	expect_content(path, "one");
	cr_expect_eq(mode_of(path), 0600);
	cr_expect_eq(ur_replace_file_unsynced(path, "four", 4, 0644), 0);
	expect_content(path, "four");
	cr_expect_eq(mode_of(path), 0644);
	cr_expect_eq(ur_replace_file(path, "", 0), 0);
	expect_content(path, "");
}

Test(replace_file, what_a_crash_has_left_is_no_obstacle)
{
	FILE *f = fopen(made, "w");

	cr_assert_not_null(f);
	fputs("half of", f);
	fclose(f);
	cr_expect_eq(ur_replace_file(path, "whole", 5), 0);
	expect_content(path, "whole");
}

Test(replace_file, a_link_beside_it_is_removed_and_not_followed)
{
	FILE *f = fopen(other, "w");

	cr_assert_not_null(f);
	fputs("of others", f);
	fclose(f);
	cr_assert_eq(symlink(other, made), 0);
	cr_expect_eq(ur_replace_file(path, "mine", 4), 0);
	expect_content(path, "mine");
	expect_content(other, "of others");
}

Test(replace_file, what_cannot_be_put_at_its_place_is_left_nowhere)
{
	char name[PATH_MAX + 1];

	cr_assert_eq(mkdir(path, 0700), 0);
	cr_expect_eq(ur_replace_file(path, "x", 1), EISDIR);
	cr_expect(access(made, F_OK) && errno == ENOENT);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	cr_expect_eq(ur_replace_file(name, "x", 1), ENAMETOOLONG);
	cr_expect_eq(ur_replace_file("/nonexistent/file", "x", 1), ENOENT);
}
