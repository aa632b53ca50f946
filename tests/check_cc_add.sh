#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# check_cc_add.sh SOURCE_DIR: a congestion control is one file and one row (CC-ADD-01, docs/adding.md). Adds
# one to a copy of the tree, in just this way, builds the core and lets a program use it.
set -eu

source_dir=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

run() {
	"$@" >"$dir/log" 2>&1 || {
		cat "$dir/log"
		echo "check_cc_add: $* failed"
		exit 1
	}
}

# Builds and results stay behind.
mkdir "$dir/src"
cd "$source_dir"
for part in *; do
	case $part in
	build* | results) ;;
	*) cp -R "$part" "$dir/src" ;;
	esac
done
cd "$dir/src"

# The row, behind the last one.
list=include/uroce/pacing_modes.h
sed -i '/^\tX(.*)$/s/$/ \\\n\tX(TOY, toy, "half of the window at each loss, a packet more at each ACK")/' "$list"
grep -q 'X(TOY' "$list" || {
	echo "check_cc_add: $list has no last row"
	exit 1
}

# The file.
cat >lib/cc/toy.c <<'END'
#include "cc/cc_priv.h"

struct toy {
	uint64_t packets;
};

UR_CC_STATE(toy)

static void on_ack(struct ur_cc *t, struct ur_cc_dest *d, const struct ur_cc_ack *ack,
		   uint64_t now_ns)
{
	(void)t, (void)now_ns;
	state_of(d)->packets += ack->bytes / d->packet;
	if (d->throttled)
		d->window += d->packet;
}

static void on_loss(struct ur_cc *t, struct ur_cc_dest *d, uint64_t now_ns)
{
	ur_cc_throttle(t, d, now_ns);
	d->open_ns = 0;
	d->window = d->in_flight / 2;
}

const struct ur_cc_ops ur_cc_toy = {.window = true, .on_ack = on_ack, .on_loss = on_loss};
END

cat >"$dir/use.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cc/cc.h"
#include "edge/config_keys.h"

#define MUST(x) ((x) ? (void)0 : (fprintf(stderr, "line %d: %s\n", __LINE__, #x), exit(1)))

void ur_assert_fail(const char *expr, const char *file, int line)
{
	fprintf(stderr, "%s:%d: %s\n", file, line, expr);
	abort();
}

static struct ur_cc t;
static _Alignas(8) uint8_t memory[4096];

int main(void)
{
	static const char *const names[] = {
#define X(NAME, name, summary) #name,
		UROCE_PACING_MODES(X)
#undef X
	};
	struct ur_cc_attr attr = {.mode = UR_CC_TOY};
	uint8_t key[UR_CC_KEY] = {1};
	struct ur_cc_dest *d;

	MUST(strcmp(names[UR_CC_TOY], "toy") == 0);
	MUST(strstr(UR_PACING_WORDS(), "|toy"));
	ur_cc_init(&t, memory, 1, &attr);
	d = ur_cc_get(&t, key, 4096, 1);
	d->in_flight = 10 * 4096;
	MUST(ur_cc_has_room(d));
	ur_cc_on_loss(&t, d, 2);
	MUST(d->throttled && d->window == 5 * 4096 && !ur_cc_has_room(d));
	ur_cc_on_ack(&t, d, 1000, 3);
	MUST(d->window == 6 * 4096);
	ur_cc_put(&t, d);
	MUST(t.throttled == 0);
	puts("a congestion control of one file and one row works");
	return 0;
}
END

unset CFLAGS CPPFLAGS LDFLAGS
run meson setup -Doptimization=0 -Ddebug=false -Dtests=false -Dedge=false "$dir/build" .
run ninja -C "$dir/build" -j2 lib/liburoce-core.a
run ${CC:-cc} -std=gnu11 -Iinclude -Ilib -o "$dir/use" "$dir/use.c" "$dir/build/lib/liburoce-core.a" -lisal
"$dir/use"
