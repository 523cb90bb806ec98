// The floor: the least an HTTP server on epoll can do. One thread, edge triggered, one
// answer for each complete head, no parsing: a head that arrives in two pieces is lost. It
// exists to be compared with, and must never face a network.
//
//   gcc -O2 -o floor floor.c && ./floor PORT [close]
//
// Its answers have the size of those of pinion's engine. With close it looks for
// "Connection: close" in the heads of each read, answers these with the same, and then
// closes; without it, and without the price of looking, it never does.
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_EVENTS = 256, IN = 64 << 10, OUT = 256 << 10, DATE = 29 };

#define BEFORE "HTTP/1.1 200 OK\r\nServer: pinion\r\nDate: "
#define AFTER "\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"status\":\"ok\"}"
#define LAST "\r\nConnection: close\r\n"
#define GOODBYE "HTTP/1.1 200 OK\r\nServer: pinion\r\nConnection: close\r\nDate: "

static char in[IN], out[OUT];
static char answer[sizeof BEFORE + DATE + sizeof AFTER];
static const size_t answer_len = sizeof BEFORE - 1 + DATE + sizeof AFTER - 1;
static char goodbye[sizeof GOODBYE + DATE + sizeof AFTER];
static const size_t goodbye_len = sizeof GOODBYE - 1 + DATE + sizeof AFTER - 1;
static int closes;

static void quit(int sig) {
	(void)sig;
	_exit(0);
}

// renew writes the answer anew when a second has passed. The coarse clock costs no system
// call and is at most a tick behind.
static void renew(void) {
	static time_t written;
	struct timespec now;
	struct tm tm;
	char date[DATE + 1];
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	if (now.tv_sec == written)
		return;
	written = now.tv_sec;
	strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&written, &tm));
	snprintf(answer, sizeof answer, BEFORE "%s" AFTER, date);
	snprintf(goodbye, sizeof goodbye, GOODBYE "%s" AFTER, date);
}

static void serve(int fd) {
	for (;;) {
		ssize_t n = recv(fd, in, sizeof in, 0);
		if (n == 0 || (n < 0 && errno != EAGAIN)) {
			close(fd);
			return;
		}
		if (n < 0)
			return;
		if (closes && memmem(in, (size_t)n, LAST, sizeof LAST - 1)) {
			send(fd, goodbye, goodbye_len, MSG_NOSIGNAL);
			close(fd);
			return;
		}
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
	closes = argc == 3 && !strcmp(argv[2], "close");
	if (argc != 2 && !closes)
		return fprintf(stderr, "usage: floor PORT [close]\n"), 2;
	signal(SIGTERM, quit);
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
		renew();
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
