#include <arpa/inet.h>
#include <string.h>

#include "api/config_read.h"

static const char *skip_scheme(const char *url)
{
    if (strncmp(url, "https://", 8) == 0)
        return url + 8;
    return strncmp(url, "http://", 7) == 0 ? url + 7 : NULL;
}

static bool printable(const char *s)
{
    for (; *s; s++) {
        if (*s <= ' ' || *s > '~')
            return false;
    }
    return true;
}

const char *conf_bad_endpoint(const char *url)
{
    const char *host = skip_scheme(url);
    if (!host)
        return "must begin with http:// or https://";
    if (strcspn(host, "/?#") == 0)
        return "names no host";
    return printable(url) ? NULL : "must hold printable ASCII without spaces";
}

const char *conf_bad_origin(const char *url)
{
    const char *why = conf_bad_endpoint(url);
    if (why)
        return why;
    if (strpbrk(url, "?#@\\"))
        return "must be scheme, host and port (and perhaps a path): no query, fragment or user";
    return url[strlen(url) - 1] == '/' ? "must not end with a slash" : NULL;
}

static bool is_port(const char *s)
{
    const size_t n = strlen(s);
    if (n < 1 || n > 5 || strspn(s, "0123456789") != n)
        return false;
    const long port = strtol(s, NULL, 10);
    return port >= 1 && port <= 65535;
}

const char *conf_bad_listen(const char *s)
{
    static const char form[] = "must be host:port or [v6 address]:port, the port from 1 to 65535";
    const char *colon = strrchr(s, ':');
    if (!colon || colon == s || !printable(s) || !is_port(colon + 1))
        return form;
    const size_t host = (size_t)(colon - s);
    if (*s == '[')
        return s[host - 1] == ']' && host > 2 ? NULL : form;
    return memchr(s, ':', host) ? form : NULL;
}

/* An address, or a network as address/bits. */
const char *conf_bad_ip(const char *s)
{
    uint8_t address[16];
    char text[64];
    const size_t n = strcspn(s, "/"), bits_n = s[n] ? strlen(s + n + 1) : 0;
    if (n >= sizeof text || bits_n > 3 || (s[n] && bits_n == 0) || strspn(s + n + (s[n] != 0), "0123456789") != bits_n)
        return "must be an IP address, or a network as address/bits";
    memcpy(text, s, n);
    text[n] = '\0';
    const int most = inet_pton(AF_INET, text, address) == 1 ? 32 : inet_pton(AF_INET6, text, address) == 1 ? 128 : -1;
    const long bits = s[n] ? strtol(s + n + 1, NULL, 10) : 0;
    return bits <= most ? NULL : "must be an IP address, or a network as address/bits";
}
