/* SPDX-License-Identifier: BSD-3-Clause */
#include "writer.h"

#include <pthread.h>
#include <stdlib.h>

#include "file/replace_file.h"
#include "thread/thread.h"

struct writer {
	const char *file;
	mode_t mode;
	pthread_t thread;
	pthread_mutex_t lock; /* for what follows */
	pthread_cond_t changed;
	char *text; /* NULL: nothing is left */
	size_t len;
	int error;
	bool closing;
};

static void *write_texts(void *arg)
{
	struct writer *w = arg;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		char *text;
		size_t len;
		int rc;

		while (!w->text && !w->closing)
			pthread_cond_wait(&w->changed, &w->lock);
		if (!w->text)
			break;
		text = w->text;
		len = w->len;
		w->text = NULL;
		pthread_mutex_unlock(&w->lock);
		rc = ur_replace_file_unsynced(w->file, text, len, w->mode);
		free(text);
		pthread_mutex_lock(&w->lock);
		w->error = rc;
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

struct writer *writer_start(const char *file, mode_t mode)
{
	struct writer *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->file = file;
	w->mode = mode;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	if (ur_thread_start(&w->thread, NULL, write_texts, w) == 0)
		return w;
	free(w);
	return NULL;
}

void writer_put(struct writer *w, char *text, size_t len)
{
	char *old;

	pthread_mutex_lock(&w->lock);
	old = w->text;
	w->text = text;
	w->len = len;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	free(old);
}

int writer_error(struct writer *w)
{
	int error;

	pthread_mutex_lock(&w->lock);
	error = w->error;
	pthread_mutex_unlock(&w->lock);
	return error;
}

int writer_end(struct writer *w)
{
	int error;

	pthread_mutex_lock(&w->lock);
	w->closing = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	error = w->error;
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return error;
}
