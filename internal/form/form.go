// Package form judges the text of a setting or of a flag by its form: a path, an address to listen
// on, the key of a taint, the name of a condition. Settings name their form in a tag, flags where
// they are declared.
//
// It refuses to look at files, at the network and at other values: a text has its form or has not.
package form

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// socketLimit is the longest path of a unix socket on Linux: sun_path without its NUL.
const socketLimit = 107

// forms tell by name what to write in place of a text; empty: the text is right.
var forms = map[string]func(text string) string{
	"file":      file,
	"directory": absolute("for example /var/lib/autoscaler-agent"),
	"socket":    socket,
	"path":      func(string) string { return "" }, // of the command line; Judge refuses what no path has
	"text":      func(string) string { return "" },
	"word":      word,
	"listen":    listen,
	"listen or off": func(text string) string {
		return unless(text == "off" || listen(text) == "", "host:port, for example 127.0.0.1:8085, or off")
	},
	"endpoint":        func(text string) string { return address(text, 1) },
	"plugin":          plugin,
	"name":            named(validation.IsDNS1123Subdomain, "a name as Kubernetes has them: small letters, digits, - and ., a letter or digit at both ends"),
	"namespace":       named(validation.IsDNS1123Label, "the name of a namespace: small letters, digits and -, at most 63"),
	"domain":          named(validation.IsDNS1123Subdomain, "a domain in small letters, for example cluster.local"),
	"host":            host,
	"label":           named(validation.IsQualifiedName, "the key of a label alone, for example example.net/pool"),
	"taint":           taint,
	"condition":       condition,
	"network":         network,
	"regexp":          pattern,
	"group":           group,
	"release":         matches(`\Av?1\.[0-9]{1,3}(\.[0-9]{1,5}(-[0-9A-Za-z.-]{1,40})?)?\z`, "a version of Kubernetes, for example v1.36.3"),
	"tag":             matches(`\Av[0-9]+\.[0-9]+\.[0-9]+([.-][0-9A-Za-z.-]{1,40})?\z`, "a release tag such as v1.2.3"),
	"url":             webAddress,
	"image":           matches(`\A[A-Za-z0-9][A-Za-z0-9._-]*(:[0-9]{1,5})?(/[A-Za-z0-9._-]+)*\z`, "host and path without a scheme, for example registry.example.net/kubernetes"),
	"pods":            pods,
	"address":         ipAddress,
	"region":          region,
	"account":         matches(`\A[0-9]{12}\z`, "the twelve digits of an AWS account"),
	"role":            matches(`\A[A-Za-z0-9+=.@_-]{1,64}\z`, "the name of an instance role, not its ARN or path"),
	"launch template": matches(`\Alt-[0-9a-f]{8,17}\z`, "the ID of a launch template, for example lt-0123456789abcdef0: a policy cannot name it otherwise"),
	"parameter":       parameter,
}

// Known says which names Judge takes.
func Known(name string) bool { return forms[name] != nil }

// Judge says what to write in place of text; empty: text has the form.
func Judge(name, text string) string {
	switch {
	case strings.TrimSpace(text) == "":
		return "a value, or leave it out"
	case strings.TrimSpace(text) != text:
		return fmt.Sprintf("%q, without blanks around it", strings.TrimSpace(text))
	}
	return forms[name](text)
}

// matches is the form of a regular expression.
func matches(expression, remedy string) func(string) string {
	form := regexp.MustCompile(expression)
	return func(text string) string { return unless(form.MatchString(text), remedy) }
}

func unless(right bool, remedy string) string {
	if right {
		return ""
	}
	return remedy
}

func named(faults func(string) []string, remedy string) func(string) string {
	return func(text string) string { return unless(len(faults(text)) == 0, remedy) }
}

func absolute(example string) func(string) string {
	return func(text string) string {
		return unless(strings.HasPrefix(text, "/"), "an absolute path, "+example+": the unit runs in /")
	}
}

func file(text string) string {
	if strings.HasSuffix(text, "/") {
		return "the path of a file, which does not end with a slash"
	}
	return absolute("for example /etc/autoscaler-agent/agent.env")(text)
}

func socket(text string) string {
	switch {
	case text == "off":
		return ""
	case len(text) > socketLimit:
		return fmt.Sprintf("a shorter path: a socket's has at most %d characters, this one has %d", socketLimit, len(text))
	}
	return unless(file(text) == "", "an absolute path, for example /run/autoscaler-agent/agent.sock, or off: the unit runs in /")
}

func word(text string) string {
	return unless(!strings.ContainsAny(text, " \t,;\"'"), "a name without blanks, commas and quotes")
}

func listen(text string) string {
	if strings.HasPrefix(text, ":") { // every address of the machine
		text = "0.0.0.0" + text
	}
	return unless(address(text, 0) == "", "host:port to listen on, for example 127.0.0.1:6444, or :6444")
}

// address is host:port with a port from least on.
func address(text string, least uint64) string {
	name, port, err := net.SplitHostPort(text)
	n, wrong := strconv.ParseUint(port, 10, 16)
	return unless(err == nil && wrong == nil && n >= least && host(name) == "" && !strings.HasPrefix(name, "*"), "host:port, for example k8s.example.net:6443")
}

// plugin is a socket or the address of a plug-in, in which Cluster Autoscaler takes a zone.
func plugin(text string) string {
	path, unix := strings.CutPrefix(text, "unix:")
	if unix {
		return unless(strings.HasPrefix(path, "/"), "unix: and an absolute path")
	}
	return unless(strings.Contains(text, ":") && word(text) == "", "host:port, for example 127.0.0.1:8086, or unix: and an absolute path")
}

func host(text string) string {
	if _, err := netip.ParseAddr(text); err == nil {
		return ""
	}
	name := strings.TrimPrefix(text, "*.")
	return unless(len(validation.IsDNS1123Subdomain(strings.ToLower(name))) == 0 && strings.Trim(name, "0123456789.") != "", "a DNS name or an address")
}

func ipAddress(text string) string {
	_, err := netip.ParseAddr(text)
	return unless(err == nil, "an IP address, for example 10.96.0.10")
}

func taint(text string) string {
	if key, _, more := strings.Cut(text, "="); more && len(validation.IsQualifiedName(key)) == 0 {
		return "the key of the taint alone: " + key
	}
	if key, _, more := strings.Cut(text, ":"); more && len(validation.IsQualifiedName(key)) == 0 {
		return "the key of the taint alone: " + key
	}
	return unless(len(validation.IsQualifiedName(text)) == 0, "the key of a taint, for example example.net/agent-not-ready")
}

// condition is one that is True while something is wrong: Ready is not.
func condition(text string) string {
	if text == "Ready" {
		return "conditions that are True while a node is sick: a node that is not Ready is sick without being named"
	}
	return unless(len(validation.IsQualifiedName(text)) == 0, "the type of a Node's condition, for example KernelDeadlock")
}

func network(text string) string {
	p, err := netip.ParsePrefix(text)
	if err == nil && p != p.Masked() {
		return fmt.Sprintf("the network of that address, %s", p.Masked())
	}
	return unless(err == nil, "a network, for example 10.96.0.0/12")
}

func pattern(text string) string {
	_, err := regexp.Compile(text)
	return unless(err == nil, "a regular expression")
}

// group is one that a bootstrap token may have.
func group(text string) string {
	return unless(regexp.MustCompile(`\Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\z`).MatchString(text), "a group that begins with system:bootstrappers: and has small letters, digits, : and - behind it")
}

func webAddress(text string) string {
	u, err := url.Parse(text)
	return unless(err == nil && slices.Contains([]string{"http", "https"}, u.Scheme) && u.Hostname() != "" && word(text) == "", "an http:// or https:// address, for example http://proxy.example.net:3128")
}

var regionForm = regexp.MustCompile(`\A([a-z]{2,3}(?:-[a-z]+)+-[0-9]{1,2})([a-z]?)\z`)

func region(text string) string {
	m := regionForm.FindStringSubmatch(text)
	if m != nil && m[2] != "" {
		return "the region of this availability zone, " + m[1]
	}
	return unless(m != nil, "a region of AWS, for example eu-west-1")
}

// mostPods is more than a kubelet starts; a range of agent/config has it, too.
const mostPods = 10000

func pods(text string) string {
	n, err := strconv.ParseUint(text, 10, 32)
	return unless(err == nil && n >= 1 && n <= mostPods, fmt.Sprintf("the number of pods that a machine may hold, from 1 to %d, for example 110", mostPods))
}

var parameterForm = regexp.MustCompile(`\A(/[A-Za-z0-9_.-]+){1,15}\z`)

func parameter(text string) string {
	right := parameterForm.MatchString(text) && len(text) <= 500 && !strings.HasPrefix(text, "/aws") && !strings.HasPrefix(text, "/ssm")
	return unless(right, "a name that begins with a slash, for example /clusters/demo/join")
}
