/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/*
 * How much a thread does with records: one for each that it puts, looks up or merges. It measures,
 * without a clock, how long others wait for who does it.
 */
#ifndef MUNINN_ENGINE_RECORDS_WORK_H
#define MUNINN_ENGINE_RECORDS_WORK_H

#include <stdint.h>

/* Of the calling thread since it began. Only differences mean anything. */
extern _Thread_local uint64_t records_worked;

#endif
