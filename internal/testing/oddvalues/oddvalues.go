// Package oddvalues is a dictionary of what people and scripts write into settings and flags: by the
// form of a value, texts that have the form and texts that have not. It refuses to judge a text: the
// tables say what is right, and tests compare the program with them.
package oddvalues

import (
	"slices"
	"strings"
)

// values of one form.
type values struct{ taken, refused []string }

// anywhere are texts that no form takes.
var anywhere = []string{" ", "  \t", " x", "x ", "a,,b", ",a", "a,", ","}

var byForm = map[string]values{
	"bool":            {[]string{"true", "false", "1", "0", "True", "f"}, []string{"yes", "no", "on", "off", "2", "-1", "maybe", "tru", "true false", "null", "☃"}},
	"time":            {[]string{"90s", "5m", "1h30m"}, []string{"10", "-1", "1d", "1 h", "h", "5 minutes", "soon", "1e9s", "9223372036854775807h", "NaN", "0x10s", "--5m", "1m;", "∞", "-1ns", "99999999h"}},
	"int":             {[]string{"1", "7"}, []string{"many", "1.5", "1e3", "0x10", "010", "--1", "+-1", "1_000", "NaN", "Inf", "99999999999999999999", "1 2", "one", "1k", "²", "-9223372036854775808"}},
	"float":           {[]string{"0.25", "5e-1"}, []string{"half", "50%", "NaN", "Inf", "-Inf", "1e400", "0,5", "--1", "0.5.5", "-0.1", "1e300"}},
	"file":            {[]string{"/etc/hosts", "/srv/a b/c", "/a/../b"}, []string{"relative", "./x", "~/x", "/dir/", "C:\\x", "file:///x", "$HOME/x"}},
	"directory":       {[]string{"/var/lib/x", "/srv/"}, []string{"relative", ".", "~", "file:///x", "$HOME"}},
	"socket":          {[]string{"/run/x.sock", "off"}, []string{"agent.sock", "unix:/x", "/run/", "none", "/" + strings.Repeat("s", 200)}},
	"path":            {[]string{"/does/not/exist", "x", "./x"}, nil},
	"text":            {[]string{"a", "a b", "$(id)", "☃"}, nil},
	"word":            {[]string{"a", "my-scheduler", "a/b", "alias/key"}, []string{"a b", "a;b", "\"a\"", "it's"}},
	"listen":          {[]string{":6444", "127.0.0.1:8085", "[::1]:1", "localhost:0", "0.0.0.0:80"}, []string{"8085", "nowhere", "127.0.0.1", "127.0.0.1:99999", "127.0.0.1:http-x", "::1:80x", "127.0.0.1:-1", "a b:1", "http://a:1", "10.0.0.256:1"}},
	"listen or off":   {[]string{":6444", "127.0.0.1:8085", "off"}, []string{"8085", "none", "127.0.0.1", "127.0.0.1:99999", "http://a:1", "OFF"}},
	"endpoint":        {[]string{"k8s.example.net:6443", "10.0.0.1:6443", "[fd00::1]:6443"}, []string{"k8s.example.net", "host", ":6443", "a:0", "a:99999", "https://a:6443", "fd00::1:6443x", "a b:6443", "10.0.0.256:6443", "a:6443/"}},
	"plugin":          {[]string{"127.0.0.1:8086", "unix:/run/x", "[::1]:1"}, []string{"host", "unix:x", "unix:", "a b:1"}},
	"name":            {[]string{"worker-1", "cp-1.example.net", "10-0-0-1"}, []string{"Worker", "a b", "-a", "a-", "a_b", "a..b", "*", "☃", "a/b", strings.Repeat("a", 300)}},
	"namespace":       {[]string{"kube-system", "a1"}, []string{"Kube", "a.b", "a b", "-a", strings.Repeat("a", 64)}},
	"domain":          {[]string{"cluster.local", "k8s.example.net", "x-k8s.io"}, []string{"cluster local", "Cluster.Local", ".local", "a..b", "http://a", "a/b", "a_b"}},
	"host":            {[]string{"kubernetes.example.net", "10.0.0.1", "fd00::1", "*.example.net", "leader"}, []string{"a b", "10.0.0.256", "10.0.0.0/8", "http://a", "a:1", "a_b", "-a", "!!"}},
	"label":           {[]string{"pool", "example.net/pool", "topology.ebs.csi.aws.com/zone"}, []string{"a=b", "a b", "/a", "a/", "a/b/c", "!!", "a:b", "Example.net/a b"}},
	"taint":           {[]string{"example.net/not-ready", "a"}, []string{"a=b:NoSchedule", "a:NoSchedule", "a=b", "a b", "a/", "!!"}},
	"condition":       {[]string{"KernelDeadlock", "ReadonlyFilesystem", "DiskPressure", "example.net/Sick"}, []string{"Ready", "disk pressure", "!!", "a=b", "DiskPressure=True"}},
	"network":         {[]string{"10.96.0.0/12", "fd00:10:96::/112", "127.0.0.0/8"}, []string{"10.96.0.0", "10.96.0.1/12", "10.0.0.0/33", "a/8", "10.0.0/8", "10.0.0.0-10.0.0.9"}},
	"regexp":          {[]string{".*", "^a$", "a|b"}, []string{"(", "[", "*", "a**"}},
	"group":           {[]string{"system:bootstrappers:mine:workers"}, []string{"system:masters", "mine", "system:bootstrappers:", "system:bootstrappers:A", "system:bootstrappers:a b"}},
	"region":          {[]string{"eu-west-1", "us-gov-west-1", "cn-north-1"}, []string{"eu-west-1a", "Ireland", "evil.example/", "eu west 1", "EU-WEST-1"}},
	"account":         {[]string{"123456789012"}, []string{"12345", "1234-5678-9012", "abcdefghijkl"}},
	"role":            {[]string{"worker", "a.b@c"}, []string{"arn:aws:iam::123456789012:role/worker", "a b", "a/b"}},
	"launch template": {[]string{"lt-0123456789abcdef0", "lt-0a1b2c3d"}, []string{"workers", "lt-", "LT-0123456789abcdef0", "lt-0123456789abcdef0:1", "lt-xyz"}},
	"parameter":       {[]string{"/clusters/demo/join"}, []string{"join", "/aws/join", "/ssm/x", "/a b", "/", "//a"}},
	"address":         {[]string{"10.96.0.10", "fd00::a"}, []string{"a", "10.0.0.256", "10.0.0.0/8", "10.0.0.1:53"}},
	"release":         {[]string{"v1.36.3", "1.36", "v1.36"}, []string{"latest", "1", "v", "abc", "v1", "x9", "2.1", "v1.x", "v1.36.3.4", "stable-1.36", "v1..3", "v1.-1", "=1.36"}},
	"tag":             {[]string{"v2.3.4", "v1.7.34"}, []string{"latest", "2", "v2", "v2.3", "2.3.4", "v2.3.x"}},
	"url":             {[]string{"http://a", "https://mirror.example.net/x"}, []string{"mirror.example.net", "ftp://a", "http://", "https:///x", "http://a b", "://"}},
	"image":           {[]string{"registry.example.net/kubernetes", "localhost:5000/x"}, []string{"https://registry.example.net", "a b", "a/", "-a", "$(id)"}},
	"pods":            {[]string{"110", "1"}, []string{"0", "-1", "100000", "many", "1.5"}},
	"label=":          {[]string{"a=b", "example.net/pool=batch"}, []string{"a", "a b=c", "=x", "a=b c", "/=x"}},
	"taint:":          {[]string{"a=b:NoSchedule", "a:NoExecute"}, []string{"a", "a=b", "a:Never", "!!:NoSchedule", ":NoSchedule"}},
	"pair":            {[]string{"a=b"}, []string{"a", "=", "a=", "=b"}},
	"amounts":         {nil, []string{"cpu=lots", "x=1", "cpu", "cpu=-1", "cpu=1,,memory=1Gi"}},
}

// Taken are texts that have the form.
func Taken(form string) []string { return slices.Clone(byForm[form].taken) }

// Refused are texts that have not.
func Refused(form string) []string {
	return append(slices.Clone(anywhere[:4]), byForm[form].refused...)
}

// Lists are texts that no list takes, whatever its elements are.
func Lists() []string { return slices.Clone(anywhere[4:]) }
