/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* File descriptors beside the bytes of a message. */
#include "common/descriptors.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	struct cmsghdr header; /* for its alignment */
	char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
};

ssize_t descriptors_send(int socket, const void *bytes, size_t length, const int *fds, int count)
{
	struct iovec part = { .iov_base = (void *)bytes, .iov_len = length };
	union control control = { .bytes = { 0 } };
	size_t fd_bytes = (size_t)count * sizeof(*fds);
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t sent;

	if (count < 0 || count > DESCRIPTORS_MAX)
		return -EINVAL;
	if (count) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(fd_bytes);
		*CMSG_FIRSTHDR(&message) = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(fd_bytes),
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
		};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), fds, fd_bytes);
	}
	sent = sendmsg(socket, &message, MSG_NOSIGNAL);
	return sent < 0 ? -errno : sent;
}

static void take(const struct cmsghdr *header, int *fds, int *count)
{
	size_t came = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

	for (size_t i = 0; i < came; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(header) + i * sizeof(fd), sizeof(fd));
		if (*count < DESCRIPTORS_MAX)
			fds[(*count)++] = fd;
		else
			close(fd);
	}
}

ssize_t descriptors_receive(int socket, void *bytes, size_t length, int *fds, int *count)
{
	struct iovec part = { .iov_base = bytes, .iov_len = length };
	union control control;
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	/* Of more than fit the kernel keeps the rest. */
	ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (got < 0)
		return -errno;
	for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header;
	     header = CMSG_NXTHDR(&message, header))
		if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
			take(header, fds, count);
	return got;
}

void descriptors_close(int *fds, int *count)
{
	while (*count > 0)
		close(fds[--*count]);
}
