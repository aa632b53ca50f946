/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pcap/pcap.h>

#include "golden.h"

static const char *golden_dir(void)
{
	const char *dir = getenv("UROCE_GOLDEN");

	if (!dir)
		errx(1, "UROCE_GOLDEN must name the directory tests/golden");
	return dir;
}

static void append(struct golden_file *file, const struct pcap_pkthdr *hdr, const uint8_t *bytes)
{
	struct golden_packet *p;

	if ((file->cnt & (file->cnt - 1)) == 0) {
		size_t cap = file->cnt ? 2 * file->cnt : 1;

		file->packets = realloc(file->packets, cap * sizeof(*p));
		if (!file->packets)
			err(1, "golden");
	}
	if (hdr->caplen != hdr->len)
		errx(1, "%s: packet %zu is not whole", file->name, file->cnt + 1);
	p = &file->packets[file->cnt++];
	p->len = hdr->caplen;
	p->time_ns = (uint64_t)hdr->ts.tv_sec * 1000000000 + (uint64_t)hdr->ts.tv_usec;
	p->b = malloc(p->len);
	if (!p->b)
		err(1, "golden");
	memcpy(p->b, bytes, p->len);
}

struct golden_file golden_load(const char *name)
{
	struct golden_file file = {.cnt = 0};
	char path[4096], error[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *hdr;
	const u_char *bytes;
	pcap_t *pcap;
	int got;

	snprintf(file.name, sizeof(file.name), "%s", name);
	snprintf(path, sizeof(path), "%s/%s", golden_dir(), name);
	pcap = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, error);
	if (!pcap)
		errx(1, "%s", error);
	while ((got = pcap_next_ex(pcap, &hdr, &bytes)) == 1)
		append(&file, hdr, bytes);
	if (got != PCAP_ERROR_BREAK)
		errx(1, "%s: %s", path, pcap_geterr(pcap));
	pcap_close(pcap);
	return file;
}

void golden_free(struct golden_file *file)
{
	for (size_t i = 0; i < file->cnt; i++)
		free(file->packets[i].b);
	free(file->packets);
	*file = (struct golden_file){.cnt = 0};
}

size_t golden_each(void (*fn)(const struct golden_file *file, void *arg), void *arg)
{
	char pattern[4096];
	glob_t found;
	size_t cnt;

	snprintf(pattern, sizeof(pattern), "%s/*.pcap", golden_dir());
	if (glob(pattern, 0, NULL, &found) != 0)
		errx(1, "no captures in %s", golden_dir());
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct golden_file file = golden_load(strrchr(found.gl_pathv[i], '/') + 1);

		fn(&file, arg);
		golden_free(&file);
	}
	cnt = found.gl_pathc;
	globfree(&found);
	return cnt;
}
