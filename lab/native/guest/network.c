/*
 * The guest's network: itself, as programs expect it, and with other guests a cable to them. The kernel passes on what
 * the host says: HOSTS_VARIABLE has the names of all hosts, HOST_VARIABLE this one's place among them.
 */
#include "guest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOSTS_VARIABLE "numaplan_hosts"
#define HOST_VARIABLE "numaplan_host"
#define ALONE "localhost"
#define CABLE "eth0"
#define NETWORK 0x0a000000u /* 10.0.0.0/16 */
#define MASK 0xffff0000u
#define FRAME_BYTES 9000 /* as networks of clusters have it */
#define HOSTS_FILE "/etc/hosts"
#define OWN_FILE "/dev/numaplan-hosts"

static uint32_t address_of(unsigned host) { return NETWORK + host + 1; }

static bool set_address(int fd, unsigned long what, uint32_t address) {
    struct ifreq cable = {.ifr_name = CABLE};
    struct sockaddr_in value = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
    memcpy(&cable.ifr_addr, &value, sizeof value);
    return !ioctl(fd, what, &cable);
}

static bool raise_interface(int fd, const char *name) {
    struct ifreq interface = {.ifr_flags = IFF_UP};
    snprintf(interface.ifr_name, sizeof interface.ifr_name, "%s", name);
    return !ioctl(fd, SIOCSIFFLAGS, &interface);
}

static bool connect_cable(int fd, unsigned host) {
    struct ifreq cable = {.ifr_name = CABLE, .ifr_mtu = FRAME_BYTES};
    guest_write_text("/proc/sys/net/ipv6/conf/" CABLE "/disable_ipv6", "1");
    return !ioctl(fd, SIOCSIFMTU, &cable) && set_address(fd, SIOCSIFADDR, address_of(host)) &&
           set_address(fd, SIOCSIFNETMASK, MASK) && raise_interface(fd, CABLE);
}

/* Everything that looks names up finds the hosts'. The host's file stays as it is. */
static bool name_hosts(char *names, unsigned own, const char **name) {
    FILE *file = fopen(OWN_FILE, "we");
    char *rest = NULL;
    unsigned host = 0;
    if (!file) return false;
    fputs("127.0.0.1 localhost\n", file);
    for (char *word = strtok_r(names, ",", &rest); word; word = strtok_r(NULL, ",", &rest), host++) {
        struct in_addr address = {.s_addr = htonl(address_of(host))};
        fprintf(file, "%s %s\n", inet_ntoa(address), word);
        if (host == own) *name = word;
    }
    return !fclose(file) && !mount(OWN_FILE, HOSTS_FILE, NULL, MS_BIND, NULL);
}

void guest_start_network(void) {
    const char *name = ALONE, *place = getenv(HOST_VARIABLE), *hosts = getenv(HOSTS_VARIABLE);
    unsigned own = place ? (unsigned)atoi(place) : 0;
    char *names = hosts ? strdup(hosts) : NULL;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || !raise_interface(fd, "lo") || (names && !(connect_cable(fd, own) && name_hosts(names, own, &name))) ||
        sethostname(name, strlen(name)))
        guest_die("cannot start the network: %s", strerror(errno));
    close(fd);
    free(names);
}
