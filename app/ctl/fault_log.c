/* SPDX-License-Identifier: BSD-3-Clause */
#include "fault_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "output.h"

#define LINE_MAX_BYTES 4096
#define BLOCK	       65536
#define ID_MAX	       (INT64_C(1) << 53) /* an exact number in any JSON reader */

/* The name of a state is also the key of the line that says so. */
static const char *const states[] = {
#define X(NAME, name) #name,
	CTL_FAULT_STATES(X)
#undef X
};

const char *ctl_fault_state_name(enum ctl_fault_state state)
{
	return states[state];
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- in memory ---- */

struct ctl_fault *ctl_fault_log_find(const struct ctl_fault_log *log, uint64_t id)
{
	for (uint32_t i = log->cnt; i-- && log->fault[i].id >= id;)
		if (log->fault[i].id == id)
			return &log->fault[i];
	return NULL;
}

bool ctl_fault_log_has(const struct ctl_fault_log *log, const struct ur_fault *report)
{
	for (uint32_t i = log->cnt; i--;) {
		const struct ur_fault *r = &log->fault[i].report;

		if (r->node_guid == report->node_guid && r->sequence == report->sequence &&
		    r->time_ns == report->time_ns)
			return true;
	}
	return false;
}

/* LINK_UP ends what LINK_DOWN of that port began, and is nothing to be looked after itself. */
static void end_link_down(struct ctl_fault_log *log, struct ctl_fault *up)
{
	if (up->report.cause != UR_FAULT_LINK_UP)
		return;
	up->state = CTL_FAULT_CLEARED;
	for (uint32_t i = 0; i < log->cnt; i++) {
		struct ctl_fault *f = &log->fault[i];

		if (f->report.cause == UR_FAULT_LINK_DOWN && f->report.port == up->report.port &&
		    f->report.node_guid == up->report.node_guid)
			f->state = CTL_FAULT_CLEARED;
	}
}

static void keep(struct ctl_fault_log *log, const struct ctl_fault *fault)
{
	if (log->cnt == CTL_FAULT_LOG_MAX) {
		log->cnt -= CTL_FAULT_LOG_MAX / 4;
		memmove(log->fault, log->fault + CTL_FAULT_LOG_MAX / 4,
			log->cnt * sizeof(*log->fault));
	}
	log->fault[log->cnt++] = *fault;
	if (fault->id > log->last_id)
		log->last_id = fault->id;
	end_link_down(log, &log->fault[log->cnt - 1]);
}

static void set_state(struct ctl_fault_log *log, uint64_t id, enum ctl_fault_state state)
{
	struct ctl_fault *f = ctl_fault_log_find(log, id);

	if (f && f->state < state)
		f->state = state;
}

/* ---- lines ---- */

static json_t *json_of(const struct ctl_fault *f)
{
	const struct ur_fault *r = &f->report;

	return json_pack("{s:I,s:f,s:s,s:s,s:o,s:s,s:i,s:I,s:I,s:I,s:I}", "id", (json_int_t)f->id,
			 "time", f->time_s, "severity", ur_severity_text(r->severity), "cause",
			 ur_fault_text(r->cause), "guid", ctl_json_hex(r->node_guid), "description",
			 f->name, "port", (int)r->port, "sequence", (json_int_t)r->sequence,
			 "node_time_ns", (json_int_t)r->time_ns, "value", (json_int_t)r->value,
			 "limit", (json_int_t)r->limit);
}

json_t *ctl_fault_log_json(const struct ctl_fault *fault)
{
	json_t *o = json_of(fault);

	json_object_set_new(o, "state", json_string(states[fault->state]));
	return o;
}

static uint8_t cause_of(const char *text)
{
	for (uint8_t i = 0; i < UR_FAULT_CNT; i++)
		if (!strcmp(ur_fault_text(i), text))
			return i;
	return UINT8_MAX;
}

static uint8_t severity_of(const char *text)
{
	for (uint8_t i = UR_SEVERITY_INFO; i < UR_SEVERITY_CRITICAL; i++)
		if (!strcmp(ur_severity_text(i), text))
			return i;
	return UR_SEVERITY_CRITICAL;
}

static bool take_report(struct ctl_fault_log *log, json_t *o)
{
	json_int_t id, sequence, node_time, value, limit;
	const char *severity, *cause, *guid, *name;
	struct ctl_fault f = {.state = CTL_FAULT_RAISED};
	uint64_t number;
	int port;

	if (json_unpack(o, "{s:I,s:F,s:s,s:s,s:s,s:s,s:i,s:I,s:I,s:I,s:I}", "id", &id, "time",
			&f.time_s, "severity", &severity, "cause", &cause, "guid", &guid,
			"description", &name, "port", &port, "sequence", &sequence, "node_time_ns",
			&node_time, "value", &value, "limit", &limit) ||
	    /* Ids grow, unless files were put together: the second one's would name faults of the first. */
	    id <= 0 || id > ID_MAX || (uint64_t)id <= log->last_id || port < 0 ||
	    port > UINT8_MAX || !ctl_parse_number(guid, UINT64_MAX, &number))
		return false;
	f.id = (uint64_t)id;
	f.report = (struct ur_fault){
		.severity = severity_of(severity),
		.cause = cause_of(cause),
		.port = (uint8_t)port,
		.sequence = (uint32_t)sequence,
		.time_ns = (uint64_t)node_time,
		.value = (uint64_t)value,
		.limit = (uint64_t)limit,
		.node_guid = number,
	};
	ctl_safe_text(name, f.name, sizeof(f.name));
	keep(log, &f);
	return true;
}

static bool take_states(struct ctl_fault_log *log, json_t *o)
{
	bool any = false;

	for (unsigned state = CTL_FAULT_ACKNOWLEDGED; state <= CTL_FAULT_CLEARED; state++) {
		json_t *list = json_object_get(o, states[state]), *id;
		size_t i;

		any = any || json_is_array(list);
		json_array_foreach(list, i, id)
			set_state(log, (uint64_t)json_integer_value(id), state);
	}
	return any;
}

static void take_line(struct ctl_fault_log *log, const char *line, size_t len)
{
	json_t *o = len <= LINE_MAX_BYTES ? json_loadb(line, len, 0, NULL) : NULL;
	bool ok = o && (json_object_get(o, "id") ? take_report(log, o) : take_states(log, o));

	log->lines++;
	log->bad += !ok;
	json_decref(o);
}

/* ---- the file ---- */

static bool file_fails(const struct ctl_fault_log *log, const char *what)
{
	return ctl_complain("--log: %s cannot be %s: %s", log->path, what, strerror(errno));
}

bool ctl_fault_log_open(struct ctl_fault_log *log, const char *path, int flags)
{
	*log = (struct ctl_fault_log){
		.path = path, .fd = -1, .writes = (flags & O_ACCMODE) == O_RDWR};
	log->fault = calloc(CTL_FAULT_LOG_MAX, sizeof(*log->fault));
	if (!log->fault)
		return ctl_complain("there is no memory for %u faults", CTL_FAULT_LOG_MAX);
	if (!path)
		return true;
	log->fd = open(path, flags | O_APPEND | O_CLOEXEC, 0644);
	if (log->fd < 0)
		return file_fails(log, log->writes ? "written" : "read");
	return ctl_fault_log_read(log);
}

void ctl_fault_log_close(struct ctl_fault_log *log)
{
	if (log->fd >= 0)
		close(log->fd);
	free(log->fault);
}

/* The file was emptied: everything in it is new. */
static void start_anew(struct ctl_fault_log *log)
{
	log->at = 0;
	log->cnt = 0;
	log->lines = log->bad = log->last_id = 0;
}

/* A line is longer than anything that this program writes: it ends with the next newline. */
static size_t take_lines(struct ctl_fault_log *log, const char *text, size_t len)
{
	size_t at = 0;

	for (const char *end; (end = memchr(text + at, '\n', len - at));
	     at = (size_t)(end - text) + 1)
		take_line(log, text + at, (size_t)(end - text) - at);
	return at;
}

bool ctl_fault_log_read(struct ctl_fault_log *log)
{
	char block[BLOCK];
	struct stat st;
	ssize_t got;
	size_t used;

	if (log->fd < 0)
		return true;
	if (fstat(log->fd, &st))
		return file_fails(log, "read");
	if (st.st_size < log->at)
		start_anew(log);
	while ((got = pread(log->fd, block, sizeof(block), log->at)) > 0) {
		used = take_lines(log, block, (size_t)got);
		if (!used && got < BLOCK)
			return true; /* a line that is being written */
		log->at += used ? (off_t)used : got;
	}
	return !got || file_fails(log, "read");
}

/* Under the lock: takes what others have written, and cuts off what is left of a line. */
static bool catch_up(struct ctl_fault_log *log)
{
	struct stat st;

	return ctl_fault_log_read(log) && !fstat(log->fd, &st) &&
	       (st.st_size == log->at || !ftruncate(log->fd, log->at));
}

/* Under the lock: appends a line. What could not be written whole is cut off again. */
static bool append(struct ctl_fault_log *log, json_t *o)
{
	char *text = json_dumps(o, JSON_COMPACT);
	size_t len = text ? strlen(text) : 0;
	bool ok;

	if (!text)
		return ctl_complain("there is no memory for a line of %s", log->path);
	text[len++] = '\n'; /* in the place of its end */
	ok = write(log->fd, text, len) == (ssize_t)len;
	if (!ok) {
		(void)file_fails(log, "written");
		(void)!ftruncate(log->fd, log->at);
	}
	free(text);
	return ok;
}

/* ---- reports ---- */

static bool lock(struct ctl_fault_log *log)
{
	if (log->fd < 0)
		return true;
	if (!flock(log->fd, LOCK_EX) && catch_up(log))
		return true;
	(void)file_fails(log, "locked");
	return false;
}

static void unlock(struct ctl_fault_log *log)
{
	if (log->fd >= 0)
		(void)flock(log->fd, LOCK_UN);
}

static enum ctl_fault_added add_locked(struct ctl_fault_log *log, const struct ur_fault *report,
				       const char *name)
{
	struct ctl_fault f = {.time_s = now_s(), .report = *report, .state = CTL_FAULT_RAISED};
	json_t *o;
	bool ok;

	if (ctl_fault_log_has(log, report))
		return CTL_FAULT_KNOWN;
	f.id = log->last_id + 1;
	snprintf(f.name, sizeof(f.name), "%s", name);
	if (log->fd < 0) {
		keep(log, &f);
		return CTL_FAULT_NEW;
	}
	if (f.id > ID_MAX) {
		(void)ctl_complain(
			"--log: %s takes no more faults: its last one has number %" PRIu64,
			log->path, log->last_id);
		return CTL_FAULT_LOST;
	}
	o = json_of(&f);
	ok = append(log, o) && ctl_fault_log_read(log);
	json_decref(o);
	return ok ? CTL_FAULT_NEW : CTL_FAULT_LOST;
}

enum ctl_fault_added ctl_fault_log_add(struct ctl_fault_log *log, const struct ur_fault *report,
				       const char *name)
{
	enum ctl_fault_added added = CTL_FAULT_LOST;

	if (lock(log))
		added = add_locked(log, report, name);
	unlock(log);
	return added;
}

bool ctl_fault_log_mark(struct ctl_fault_log *log, const uint64_t *ids, uint32_t cnt,
			enum ctl_fault_state state)
{
	/* A line is not longer than what is read again. */
	enum { IDS_A_LINE = 150 };
	bool ok = true;

	for (uint32_t at = 0, n; ok && at < cnt; at += n) {
		json_t *list = json_array(), *o;

		n = cnt - at < IDS_A_LINE ? cnt - at : IDS_A_LINE;
		for (uint32_t i = at; i < at + n; i++)
			json_array_append_new(list, json_integer((json_int_t)ids[i]));
		o = json_pack("{s:f,s:o}", "time", now_s(), states[state], list);
		if (log->fd >= 0 && log->writes) {
			ok = lock(log) && append(log, o) && ctl_fault_log_read(log);
			unlock(log);
		}
		for (uint32_t i = at; ok && i < at + n; i++)
			set_state(log, ids[i], state);
		json_decref(o);
	}
	return ok;
}
