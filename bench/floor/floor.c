// The floor: the least an HTTP server on epoll can do. One thread, edge
// triggered, a canned answer for each complete head, no parsing. It exists to
// be compared with, and must never face a network.
//
//   gcc -O2 -o floor floor.c && ./floor PORT FILE-WITH-THE-ANSWER
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_EVENTS = 256, IN = 64 << 10, OUT = 256 << 10 };

static char in[IN], out[OUT], answer[4096];
static size_t answer_len;

static void serve(int fd) {
	for (;;) {
		ssize_t n = recv(fd, in, sizeof in, 0);
		if (n == 0 || (n < 0 && errno != EAGAIN)) {
			close(fd);
			return;
		}
		if (n < 0)
			return;
		size_t len = 0;
		char *p = in, *end = in + n;
		while ((p = memmem(p, (size_t)(end - p), "\r\n\r\n", 4)) && len + answer_len <= OUT) {
			memcpy(out + len, answer, answer_len);
			len += answer_len;
			p += 4;
		}
		if (len > 0 && send(fd, out, len, MSG_NOSIGNAL) < 0) {
			close(fd);
			return;
		}
		if ((size_t)n < sizeof in)
			return;
	}
}

int main(int argc, char **argv) {
	if (argc != 3)
		return fprintf(stderr, "usage: floor PORT FILE\n"), 2;
	FILE *f = fopen(argv[2], "r");
	if (!f || !(answer_len = fread(answer, 1, sizeof answer, f)))
		return perror(argv[2]), 1;
	int one = 1, ln = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_port = htons((unsigned short)atoi(argv[1])),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	setsockopt(ln, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	setsockopt(ln, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (bind(ln, (struct sockaddr *)&sa, sizeof sa) || listen(ln, 4096))
		return perror("listen"), 1;
	int ep = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = ln}, evs[MAX_EVENTS];
	epoll_ctl(ep, EPOLL_CTL_ADD, ln, &ev);
	for (;;) {
		int n = epoll_wait(ep, evs, MAX_EVENTS, -1);
		for (int i = 0; i < n; i++) {
			if (evs[i].data.fd != ln) {
				serve(evs[i].data.fd);
				continue;
			}
			int fd = accept4(ln, NULL, NULL, SOCK_NONBLOCK);
			if (fd < 0)
				continue;
			ev.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
			ev.data.fd = fd;
			epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
		}
	}
}
