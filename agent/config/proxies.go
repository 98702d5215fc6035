package config

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
)

// proxies judges the variables of Go's HTTP client as it reads them. One that it cannot read it takes
// for the host "http", and every call to the cloud fails with a name that no file holds. The error
// does not repeat the value, which may hold a password.
func proxies() error {
	var errs []error
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
		if value := os.Getenv(name); value != "" && !isProxy(value) && (strings.Contains(value, "://") || !isProxy("http://"+value)) {
			errs = append(errs, fmt.Errorf("%s is no address of a proxy: write for example http://proxy.example.net:3128", name))
		}
	}
	return errors.Join(errs...)
}

func isProxy(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Hostname() != "" && strings.Trim(u.Path, "/") == "" && slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme)
}
