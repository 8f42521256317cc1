/* `sockets PATH`: talks to itself through a unix socket at PATH and by TCP to its host's name; prints that name. */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int failed(const char *what) {
    perror(what);
    return 1;
}

static int talk(int listener, const struct sockaddr *address, socklen_t length) {
    char said[8] = "";
    int to = socket(address->sa_family, SOCK_STREAM, 0);
    if (listen(listener, 1) || connect(to, address, length)) return failed("connect");
    int from = accept(listener, NULL, NULL);
    if (write(to, "heard", 6) != 6 || read(from, said, sizeof said) != 6 || strcmp(said, "heard"))
        return failed("talk");
    return 0;
}

int main(int count, char **words) {
    char name[256];
    struct sockaddr_un unix_address = {.sun_family = AF_UNIX};
    struct addrinfo *host, wanted = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    if (count != 2 || gethostname(name, sizeof name) || getaddrinfo(name, NULL, &wanted, &host)) return failed("name");
    snprintf(unix_address.sun_path, sizeof unix_address.sun_path, "%s", words[1]);
    int own = socket(AF_UNIX, SOCK_STREAM, 0), net = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t length = host->ai_addrlen;
    if (bind(own, (struct sockaddr *)&unix_address, sizeof unix_address)) return failed(words[1]);
    if (bind(net, host->ai_addr, length) || getsockname(net, host->ai_addr, &length)) return failed(name);
    puts(name);
    return talk(own, (struct sockaddr *)&unix_address, sizeof unix_address) || talk(net, host->ai_addr, length);
}
