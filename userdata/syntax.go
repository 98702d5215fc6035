package userdata

import (
	"fmt"
	"strconv"
	"strings"
)

// Character classes are written out rather than as regular expressions: regexp
// would be this package's largest import by far.

func only(s, extra string) bool {
	for i := range len(s) {
		if !isAlnum(s[i]) && strings.IndexByte(extra, s[i]) < 0 {
			return false
		}
	}
	return true
}

func isAlnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func isLowerAlnum(s string) bool { return only(s, "") && strings.ToLower(s) == s }

// isToken follows bootstrap tokens' \A([a-z0-9]{6})\.([a-z0-9]{16})\z.
func isToken(s string) bool {
	return len(s) == 23 && s[6] == '.' && isLowerAlnum(s[:6]) && isLowerAlnum(s[7:])
}

func isSHA256(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// isName is the syntax of label values and of the name part of keys.
func isName(s string) bool {
	return len(s) > 0 && len(s) <= 63 && only(s, "-_.") && isAlnum(s[0]) && isAlnum(s[len(s)-1])
}

// isDNSName also takes IPv4 addresses and upper case, as a host name may.
func isDNSName(s string) bool {
	if len(s) == 0 || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if len(label) == 0 || len(label) > 63 || !only(label, "-") || !isAlnum(label[0]) || !isAlnum(label[len(label)-1]) {
			return false
		}
	}
	return true
}

func isURL(s string) bool {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(s, "http://")
	}
	return ok && rest != "" && len(s) <= 1024 && only(rest, "-._~:/?#[]@!$&()*+,;=%{}")
}

// minor returns the minor number of a version "v1.MINOR.PATCH[-pre]" and refuses
// versions that user data cannot be made for.
func minor(version string) (int, error) {
	rest, ok := strings.CutPrefix(version, "v1.")
	number, patch, ok2 := strings.Cut(rest, ".")
	patch, _, _ = strings.Cut(patch, "-")
	n, err := strconv.Atoi(number)
	_, err2 := strconv.ParseUint(patch, 10, 16)
	if !ok || !ok2 || err != nil || err2 != nil || n < 0 || !isName(version) {
		return 0, fmt.Errorf("%q is not a version: give it as v1.36.3", version)
	}
	switch {
	case n < OldestMinor:
		return n, fmt.Errorf("%s is too old: user data can be made for v1.%d to v1.%d; upgrade the cluster, or join its workers by hand", version, OldestMinor, NewestMinor)
	case n > NewestMinor:
		return n, fmt.Errorf("%s is newer than this agent knows: user data can be made for v1.%d to v1.%d; use a newer agent, or a kubelet of v1.%d, which works with a control plane up to three minors newer", version, OldestMinor, NewestMinor, NewestMinor)
	}
	return n, nil
}

// APIServes tells whether the kubeadm of Kubernetes 1.MINOR reads a version of its
// configuration: v1beta4 came with 1.31, and v1beta3 went with 1.36.
func APIServes(api string, minor int) bool {
	switch api {
	case "v1beta2":
		return minor < 27
	case "v1beta3":
		return minor >= 22 && minor < 36
	case "v1beta4":
		return minor >= 31
	}
	return false
}
