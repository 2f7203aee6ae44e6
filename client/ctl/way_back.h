/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * Filling an object with many commands, so that a failure leaves it as it was. A version of the
 * partition keeps the old content meanwhile: without it a full device would reclaim just that. It
 * is dropped in the end. Should the process be killed, the version stays, and its name says why it
 * is there.
 */
#ifndef MUNINN_CLIENT_CTL_WAY_BACK_H
#define MUNINN_CLIENT_CTL_WAY_BACK_H

#include "client/ctl/ctl.h"

struct way_back {
	struct osd_client_address object;
	bool is_new;      /* was not there before */
	bool is_changed;  /* has given up its content, or may have */
	bool in_place;    /* is written where it is: there is no way back */
	uint64_t version; /* that keeps it; 0: none */
};

/* Before the content of an object is given up. Where no version can be made, there is none. */
void way_back_keep(struct ctl *ctl, struct osd_client_address object, struct way_back *back);
/* The object is whole, or never changed. A signal does not come between any more. */
void way_back_forget(struct ctl *ctl, const struct way_back *back);
/* It is not: makes it what it was, or says what is left. */
void way_back_go(struct ctl *ctl, const struct way_back *back);

#endif
