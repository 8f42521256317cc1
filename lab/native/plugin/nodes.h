/* Which node a page that the plugin sees belongs to, learnt from probes of the guest, never from a layout. */
#ifndef NUMAPLAN_LAB_NODES_H
#define NUMAPLAN_LAB_NODES_H

#include "qemu_plugin.h"

#include <stdint.h>
#include <stdio.h>

#define NODES_MAX 64
#define NODE_UNKNOWN NODES_MAX /* device memory, or a page in no calibrated span */

void lab_nodes_add_span(uint64_t node, uint64_t physical, uint64_t bytes);
void lab_nodes_add_probe(uint64_t physical, const struct qemu_plugin_hwaddr *page);

/* Check that the probes agree, choose the key and write what was found. Returns whether counting can be trusted. */
bool lab_nodes_calibrate(FILE *report);

/* Where an access went: a number that rises with each byte of a node's memory. */
uint64_t lab_nodes_key(const struct qemu_plugin_hwaddr *page);

/* The node of what a key stands for, or NODE_UNKNOWN. */
unsigned lab_nodes_find(uint64_t key);

/* The guest-physical address of what a key stands for, 0 where it is not known. */
uint64_t lab_nodes_physical(uint64_t key);
void lab_nodes_write(FILE *file); /* a line `node NODE FIRST BYTES` for each piece of its physical memory */

/* Number of a key's page among those of all nodes, from 0; what has no node is the last. */
uint64_t lab_nodes_page(uint64_t key);
uint64_t lab_nodes_pages(void); /* how many numbers there are */

#endif
