/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* Switches timing, faults and power cuts of a device on and off. */
#include "nand/lab.h"

void nand_feature_switch(struct nand *nand, enum nand_feature feature, bool on)
{
	if (on)
		atomic_fetch_or_explicit(&nand->features, (unsigned)feature, memory_order_release);
	else
		atomic_fetch_and_explicit(&nand->features, ~(unsigned)feature,
					  memory_order_release);
}

void nand_lab_free(struct nand *nand)
{
	nand_timing_free(nand);
	nand_faults_free(nand);
	nand_power_free(nand);
	pthread_mutex_destroy(&nand->lab_lock);
}
