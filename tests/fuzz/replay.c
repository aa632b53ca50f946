/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* asprintf() */

#include <dirent.h>
#include <err.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

/*
 * Runs a fuzz target as an ordinary program, built by any compiler: first every file of its corpus,
 * then, on request, pseudo-random mutations of the files. Mutation i depends only on the seed and
 * on i, so that --seed S --only I repeats a failure. Without --seed, the seed is that of UROCE_FUZZ_SEED, or a
 * new one in each run.
 */
struct input {
	uint8_t *bytes;
	size_t len;
};

static struct {
	struct input *inputs;
	size_t cnt;
} corpus;

static const char help[] =
	"Usage: TARGET [--random N] [--seed S] [--only I] FILE|DIRECTORY...\n"
	"Feeds every file to the fuzz target, then N mutations of them (or just "
	"mutation I). S, which is\n"
	"printed, is that of the environment's UROCE_FUZZ_SEED or a new number in each run.\n";

/* The current input, for the error message. */
static char now_running[512];

static void say_what_ran(void)
{
	static const char before[] = "replay: failed at ";
	ssize_t ignored;

	ignored = write(STDERR_FILENO, before, sizeof(before) - 1);
	ignored = write(STDERR_FILENO, now_running, strlen(now_running));
	ignored = write(STDERR_FILENO, "\n", 1);
	(void)ignored;
}

static void on_signal(int sig)
{
	say_what_ran();
	signal(sig, SIG_DFL);
	raise(sig);
}

/* Defined if a sanitizer is linked in, which ends the program without a signal. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void add_file(const char *path)
{
	struct input in = {.len = 0};
	struct stat st;
	FILE *f = fopen(path, "rb");

	if (!f || fstat(fileno(f), &st) != 0)
		err(2, "%s", path);
	in.bytes = malloc((size_t)st.st_size + 1);
	if (!in.bytes)
		err(2, "%s", path);
	in.len = fread(in.bytes, 1, (size_t)st.st_size, f);
	if (in.len != (size_t)st.st_size)
		err(2, "%s", path);
	fclose(f);
	corpus.inputs = reallocarray(corpus.inputs, corpus.cnt + 1, sizeof(in));
	if (!corpus.inputs)
		err(2, "%s", path);
	corpus.inputs[corpus.cnt++] = in;
}

static int visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static void add_path(const char *path)
{
	struct dirent **names;
	int cnt = scandir(path, &names, visible, alphasort);

	if (cnt < 0) {
		add_file(path);
		return;
	}
	for (int i = 0; i < cnt; i++) {
		char *file;

		if (asprintf(&file, "%s/%s", path, names[i]->d_name) < 0)
			err(2, "%s", path);
		add_file(file);
		free(file);
		free(names[i]);
	}
	free(names);
}

/* SplitMix64, for which all seeds are equally good. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static size_t below(uint64_t *rng, size_t n)
{
	return (size_t)(next_random(rng) % n);
}

#define GROWTH_MAX 64

/* Makes one random change to the `len` bytes at `b`, which may grow by GROWTH_MAX. Returns the length. */
static size_t mutate_once(uint64_t *rng, uint8_t *b, size_t len)
{
	static const uint8_t edges[] = {0, 1, 3, 4, 0x7f, 0x80, 0xfe, 0xff};
	const struct input *other;
	size_t at, n;

	switch (below(rng, len ? 7 : 1)) {
	case 0: /* longer */
		n = 1 + below(rng, GROWTH_MAX);
		for (size_t i = 0; i < n; i++)
			b[len + i] = (uint8_t)next_random(rng);
		return len + n;
	case 1: /* shorter */
		return below(rng, len);
	case 2: /* a bit in the headers, which matter most */
		at = below(rng, len < 80 ? len : 80);
		b[at] ^= (uint8_t)(1 << below(rng, 8));
		return len;
	case 3:
		b[below(rng, len)] ^= (uint8_t)(1 << below(rng, 8));
		return len;
	case 4:
		b[below(rng, len)] = edges[below(rng, sizeof(edges))];
		return len;
	case 5:
		b[below(rng, len)] = (uint8_t)next_random(rng);
		return len;
	default: /* a piece of another input, at the same offset */
		other = &corpus.inputs[below(rng, corpus.cnt)];
		n = other->len < len ? other->len : len;
		if (!n)
			return len;
		at = below(rng, n);
		n = 1 + below(rng, n - at);
		memcpy(b + at, other->bytes + at, n);
		return len;
	}
}

#define MUTATIONS_MAX 4

static void run_mutation(uint64_t seed, uint64_t idx)
{
	uint64_t rng = seed ^ (idx * 0xd1342543de82ef95);
	const struct input *from = &corpus.inputs[below(&rng, corpus.cnt)];
	uint8_t *work = malloc(from->len + MUTATIONS_MAX * GROWTH_MAX);
	size_t len = from->len, times = 1 + below(&rng, MUTATIONS_MAX);
	uint8_t *exact;

	if (!work)
		err(2, "replay");
	memcpy(work, from->bytes, len);
	while (times--)
		len = mutate_once(&rng, work, len);
	/* An allocation of the exact size, so that ASan detects a read past the end. */
	exact = malloc(len ? len : 1);
	if (!exact)
		err(2, "replay");
	memcpy(exact, work, len);
	free(work);
	snprintf(now_running, sizeof(now_running), "--seed %" PRIu64 " --only %" PRIu64, seed, idx);
	LLVMFuzzerTestOneInput(exact, len);
	free(exact);
}

static void run_corpus(void)
{
	for (size_t i = 0; i < corpus.cnt; i++) {
		uint8_t *exact = malloc(corpus.inputs[i].len ? corpus.inputs[i].len : 1);

		if (!exact)
			err(2, "replay");
		memcpy(exact, corpus.inputs[i].bytes, corpus.inputs[i].len);
		snprintf(now_running, sizeof(now_running), "corpus file %zu", i + 1);
		LLVMFuzzerTestOneInput(exact, corpus.inputs[i].len);
		free(exact);
	}
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 0);

	if (end == text || *end)
		errx(2, "'%s' is not a number", text);
	return n;
}

static uint64_t default_seed(void)
{
	const char *fixed = getenv("UROCE_FUZZ_SEED");
	uint32_t seed;

	if (fixed)
		return number(fixed);
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		err(2, "no random number for a seed");
	return seed;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{"random", required_argument, NULL, 'r'},
		{"seed", required_argument, NULL, 's'},
		{"only", required_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	uint64_t first = 0, end = 0, seed = default_seed();
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1)
		switch (c) {
		case 'r':
			first = 0;
			end = number(optarg);
			break;
		case 's':
			seed = number(optarg);
			break;
		case 'o':
			first = number(optarg);
			end = first + 1;
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			return 2;
		}
	for (int i = optind; i < argc; i++)
		add_path(argv[i]);
	if (!corpus.cnt)
		errx(2, "the corpus is empty\n%s", help);

	signal(SIGABRT, on_signal);
	signal(SIGSEGV, on_signal);
	signal(SIGBUS, on_signal);
	signal(SIGFPE, on_signal);
	signal(SIGILL, on_signal);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(say_what_ran);

	/* Printed first, so that the log has the seed even after a hang or a kill. */
	printf("seed %" PRIu64 "\n", seed);
	fflush(stdout);
	if (first == 0)
		run_corpus();
	for (uint64_t i = first; i < end; i++)
		run_mutation(seed, i);
	printf("%zu corpus files, %" PRIu64 " mutations, seed %" PRIu64 "\n", corpus.cnt,
	       end - first, seed);

	for (size_t i = 0; i < corpus.cnt; i++)
		free(corpus.inputs[i].bytes);
	free(corpus.inputs);
	return 0;
}
