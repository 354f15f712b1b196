/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The example of the README: a server whose sessions end, stay, or are lost. Waits until standard input ends. */
#include <cstdio>
#include <memory>
#include <string>
#include <unistd.h>
#include <unordered_map>

enum { REQUESTS = 20000, USERS = 4000 };

struct Session {
	explicit Session(int number) : user("user number " + std::to_string(number) + " of many")
	{
	}
	virtual ~Session() = default;
	std::string user;
	char buffer[2048] = {};
};

class Registry
{
	std::unordered_map<int, Session *> sessions;

      public:
	/* Every hundredth user is already there: the old session is forgotten, and not deleted. */
	void log_in(int number)
	{
		sessions[number % 100 ? number : 0] = new Session(number);
	}
};

static Registry *registry = new Registry;

static void handle_request(int number)
{
	auto reply = std::make_unique<char[]>(4096);

	if (number < USERS)
		registry->log_in(number);
}

static void serve()
{
	for (int i = 0; i < REQUESTS; i++)
		handle_request(i);
}

int main()
{
	char byte;

	serve();
	printf("ready\n</malloc>\n");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
