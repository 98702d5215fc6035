package script

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	kubeletconfig "k8s.io/kubelet/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/console"
)

// calls are the stand-ins that the script has called, with their arguments.
func (p *play) calls() string {
	data, _ := os.ReadFile(filepath.Join(p.dir, "calls"))
	return string(data)
}

func (p *play) has(name string) bool {
	_, err := os.Lstat(filepath.Join(p.dir, name))
	return err == nil
}

// meta answers one path of the metadata service, the document of OpenStack by the name
// "openstack".
func meta(path string, status int, text string) func(*play) {
	return func(p *play) {
		if path == "openstack" {
			p.spec.Cloud = "openstack"
		}
		p.imds = func(asked string) (int, string, bool) { return status, text, asked == path }
	}
}

// instead answers in place of the mirror for files whose path has a part.
func instead(part string, answer http.HandlerFunc) func(*play) {
	return func(p *play) {
		p.odd = func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, part) {
				return false
			}
			answer(w, r)
			return true
		}
	}
}

func text(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// kubeadmSays lets kubeadm fail with these words.
func kubeadmSays(words string) func(*play) { return func(p *play) { p.put("says", words+"\n") } }

func tool(name, body string) func(*play) {
	return func(p *play) { p.put("bin/"+name, note+body+"\n") }
}

// cannotReach are kubeadm's words for a first read that fails (cmd/kubeadm/app/discovery/token).
func cannotReach(why string) string {
	return "error: error execution phase preflight: couldn't validate the identity of the API Server: failed to request the cluster-info ConfigMap: " +
		`Get "https://k8s.example.net:6443/api/v1/namespaces/kube-public/configmaps/cluster-info?timeout=10s": ` + why
}

const notYet = "tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-11-27T10:00:00Z is before 2026-11-27T10:30:00Z"

// afterStart is a kubelet that was started and does not join: more of kubeadm's words, what systemctl answers, and the
// end of the kubelet's journal.
func afterStart(more, systemctl, journal string) func(*play) {
	return func(p *play) {
		kubeadmSays("[kubelet-start] Starting the kubelet\n[kubelet-check] Waiting for a healthy kubelet at http://127.0.0.1:10248/healthz. This can take up to 4m0s\n" + more)(p)
		tool("systemctl", "case $1 in cat) [ -e /etc/systemd/system/$2 ] ;; "+systemctl+" ;; esac")(p)
		p.put("journal", `E1127 10:00:00.000000 1 run.go:72] `+journal+"\n")
		tool("journalctl", "cat /srv/journal")(p)
	}
}

func both(a, b func(*play)) func(*play) { return func(p *play) { a(p); b(p) } }

func getent(rc int) func(*play) { return tool("getent", fmt.Sprint("exit ", rc)) }

// curlDate is curl to whose question for the time an API server answers, whose clock is elsewhere.
func curlDate(when string) string {
	return "case $1 in -skI) printf 'HTTP/2 403\\r\\ndate: %s\\r\\n' \"$(LC_ALL=C date -u -d '" + when + "' '+%a, %d %b %Y %H:%M:%S GMT')\" ;; *) exec /srv/bin/curl.real \"$@\" ;; esac"
}

func document(text string) func(*play) { return meta("openstack", 200, text) }

const server = `"uuid": "8a1c9e2e-52bd-4a29-9e3c-0d0f7b8a1c9e"`

// faults are machines that must not join: each ends with its phase marker.
var faults = map[string]struct {
	change func(*play)
	want   string
}{
	"containerd is corrupt":        {instead("containerd-", text(200, "evil")), "failed reason=checksum file=containerd"},
	"runc is corrupt":              {instead("/runc.", text(200, "evil")), "failed reason=checksum file=runc"},
	"the CNI plug-ins are corrupt": {instead("cni-plugins", text(200, "evil")), "failed reason=checksum file=cni"},
	"crictl is corrupt":            {instead("crictl", text(200, "evil")), "failed reason=checksum file=crictl"},
	"kubeadm is corrupt":           {instead("/kubeadm", text(200, "#!/bin/sh\ntouch /srv/evil\n")), "failed reason=checksum file=kubeadm"},
	"a page of a captive portal":   {instead("/kubelet", text(200, "<html>log in</html>")), "failed reason=checksum file=kubelet"},
	"an empty file":                {instead("/kubelet", text(200, "")), "failed reason=checksum file=kubelet"},
	"a file that is cut": {instead("/kubelet", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "999")
		_, _ = w.Write([]byte("#!"))
	}), "failed reason=download file=kubelet curl=18"},
	"a redirect to another's file": {instead("/kubelet", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/latest/meta-data/instance-id", http.StatusFound)
	}), "failed reason=checksum file=kubelet"},
	"a redirect without end": {instead("/kubelet", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }), "failed reason=download file=kubelet curl=47"},
	"a redirect to a file of its own": {instead("/kubelet", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "file:///etc/shadow")
		w.WriteHeader(302)
	}), "failed reason=download file=kubelet curl=1"},
	"a mirror without the file": {instead("/runc.", text(404, "no")), "failed reason=download file=runc curl=22"},
	"a mirror that is broken":   {instead("/runc.", text(503, "later")), "failed reason=download file=runc curl=22"},
	"two mirrors, both corrupt": {func(p *play) {
		p.spec.Downloads.Mirrors = append(p.spec.Downloads.Mirrors, p.mirror.URL+"/")
		instead("/runc.", text(200, "evil"))(p)
	}, "failed reason=checksum file=runc"},
	"a machine of another system":   {func(p *play) { p.system = "rocky" }, "failed reason=system want=debian is=rocky"},
	"another architecture":          {tool("uname", "echo riscv64"), "failed reason=architecture-riscv64"},
	"no room for programs":          {func(p *play) { p.fat(); p.small["/usr/local"] = "256k" }, "failed reason=no-space dir=/usr/local during=download"},
	"no room for downloads":         {func(p *play) { p.fat(); p.small["/tmp"] = "256k" }, "failed reason=no-space file=containerd"},
	"no room for plug-ins":          {func(p *play) { p.fat(); p.small["/opt"] = "64k" }, "failed reason=no-space dir=/opt during=download"},
	"no room for the join":          {func(p *play) { p.small["/run"] = "4k" }, "failed reason=no-space dir=/run during=metadata"},
	"containerd does not run":       {func(p *play) { p.put("no-config", "") }, "failed reason=containerd-config"},
	"a service that does not start": {tool("systemctl", "case $1 in cat) [ -e /etc/systemd/system/$2 ] ;; start) exit 1 ;; esac"), "failed reason=containerd"},
	"no package manager's index": {func(p *play) {
		p.spec.KubernetesVersion = "v1.30.14"
		p.publish()
		p.lacks("conntrack")
		tool("apt-get", "exit 100")(p)
	}, "failed reason=package-index"},
	"no such package": {func(p *play) {
		p.spec.KubernetesVersion = "v1.30.14"
		p.publish()
		p.lacks("conntrack")
		tool("apt-get", "case $* in *install*) exit 100 ;; esac")(p)
	}, "failed reason=package name=conntrack"},
	"a hook that fails":                 {func(p *play) { p.spec.BeforeJoin = []byte("#!/bin/sh\nexit 7\n") }, "failed reason=before-join rc=7"},
	"a hook of no interpreter":          {func(p *play) { p.spec.BeforeJoin = []byte("#!/no/such\n") }, "failed reason=before-join rc=127"},
	"no session of the metadata":        {meta("api/token", 403, ""), "failed reason=imds-token"},
	"no host name":                      {meta("meta-data/local-hostname", 404, ""), "failed reason=imds-local-hostname"},
	"an empty host name":                {meta("meta-data/local-hostname", 200, ""), "failed reason=bad-metadata"},
	"a host name that is a command":     {meta("meta-data/local-hostname", 200, "$(touch${IFS}/srv/evil)"), "failed reason=bad-metadata"},
	"a host name of two lines":          {meta("meta-data/local-hostname", 200, "good\nevil: true"), "failed reason=bad-metadata"},
	"a host name that ends YAML":        {meta("meta-data/local-hostname", 200, `a","token":"b`), "failed reason=bad-metadata"},
	"an instance that is a path":        {meta("meta-data/instance-id", 200, "../../etc"), "failed reason=bad-metadata"},
	"a zone with a quote":               {meta("meta-data/placement/availability-zone", 200, "a'b"), "failed reason=bad-metadata"},
	"a type in capitals":                {meta("meta-data/instance-type", 200, "M6I.LARGE"), "failed reason=bad-metadata"},
	"no document of OpenStack":          {meta("openstack", 500, ""), "failed reason=metadata"},
	"a document that is none":           {document("<html>"), "failed reason=bad-metadata-name"},
	"a server without a name":           {document(`{` + server + `}`), "failed reason=bad-metadata-name"},
	"a name only in its metadata":       {document(`{` + server + `, "meta": {"name": "thief"}}`), "failed reason=bad-metadata-name"},
	"a name only in a list":             {document(`{` + server + `, "keys": [{"name": "thief"}]}`), "failed reason=bad-metadata-name"},
	"a name with an escape":             {document(`{` + server + `, "name": "a\"b"}`), "failed reason=bad-metadata-name"},
	"a name that is a command":          {document(`{` + server + "," + ` "name": "$(touch /srv/evil)"}`), "failed reason=bad-metadata-name"},
	"a name with a blank":               {document(`{` + server + `, "name": "worker 1"}`), "failed reason=bad-metadata-name"},
	"a server without a UUID":           {document(`{"name": "worker-1"}`), "failed reason=bad-metadata-uuid"},
	"a UUID that is a path":             {document(`{"name": "worker-1", "uuid": "../x"}`), "failed reason=bad-metadata-uuid"},
	"a provider ID that is a command":   {document(`{` + server + `, "name": "worker-1", "meta": {"autoscaler-agent.provider-id": "a$(id)"}}`), "failed reason=bad-metadata-provider-id"},
	"a wrong token":                     {kubeadmSays(`token id "abcdef" is invalid for this cluster or it has expired`), "failed reason=join-token node=" + nodeName},
	"a wrong secret":                    {kubeadmSays("failed to verify JWS signature of received cluster info object"), "failed reason=cluster-info-signature node=" + nodeName},
	"a wrong pin":                       {kubeadmSays("cluster CA found in cluster-info ConfigMap is invalid: none of the public keys are pinned"), "failed reason=ca-pin node=" + nodeName},
	"a second cluster-info":             {kubeadmSays("second kubeconfig received from cluster-info was different from the first one"), "failed reason=cluster-info-changed node=" + nodeName},
	"nobody at the endpoint":            {kubeadmSays("failed to request the cluster-info ConfigMap: dial tcp: connection refused"), "failed reason=endpoint-refused node=" + nodeName},
	"a taken name":                      {kubeadmSays(`a Node with name "x" and status "Ready" already exists in the cluster`), "failed reason=node-name node=" + nodeName},
	"two checks of kubeadm":             {kubeadmSays("[preflight] Some fatal errors occurred:\n\t[ERROR Swap]: on\n\t[ERROR Port-10250]: in use"), "failed reason=preflight checks=Swap,Port-10250 node=" + nodeName},
	"a check's name with a command":     {kubeadmSays("[preflight] Some fatal errors occurred:\n\t[ERROR $(id)]: on"), "failed reason=preflight checks= node=" + nodeName},
	"a disk that fills while joining":   {kubeadmSays("write /etc/kubernetes/pki/ca.crt: no space left on device"), "failed reason=no-space node=" + nodeName},
	"a kubelet that crashes":            {afterStart("", "is-active) [ $3 = containerd ] ;; show) case $5 in kubelet) echo 9 ;; *) echo 0 ;; esac", `"command failed" err="failed to run Kubelet: could not init cloud provider"`), "failed reason=kubelet node=" + nodeName},
	"a kubelet that takes no cgroup v1": {afterStart("", "is-active) [ $3 = containerd ] ;; show) case $5 in kubelet) echo 9 ;; *) echo 0 ;; esac", `"command failed" err="failed to run Kubelet: cgroup v1 detected. cgroup v1 support is deprecated"`), "failed reason=kubelet-cgroup-v1 node=" + nodeName},
	"a kubelet with swap":               {afterStart("", "is-active) [ $3 = containerd ] ;; show) case $5 in kubelet) echo 9 ;; *) echo 0 ;; esac", `"command failed" err="failed to run Kubelet: running with swap on is not supported, please disable swap or set --fail-swap-on flag to false"`), "failed reason=kubelet-swap node=" + nodeName},
	"a kubelet with a bad flag":         {afterStart("", "is-active) [ $3 = containerd ] ;; show) case $5 in kubelet) echo 9 ;; *) echo 0 ;; esac", `"command failed" err="failed to parse kubelet flag: unknown flag: --no-such"`), "failed reason=kubelet-config node=" + nodeName},
	"a kubelet that restarts again and again": {afterStart("[kubelet-check] The kubelet is healthy after 500ms\n[kubelet-start] Waiting for the kubelet to perform the TLS Bootstrap\n",
		"show) case $5 in kubelet) echo 9 ;; *) echo 0 ;; esac", ""), "failed reason=kubelet node=" + nodeName},
	"containerd that crashes under the kubelet":        {afterStart("", "is-active) [ $3 = kubelet ] ;; show) echo 0", ""), "failed reason=containerd node=" + nodeName},
	"containerd that restarts again and again":         {afterStart("", "show) echo 9", ""), "failed reason=containerd node=" + nodeName},
	"containerd that speaks no CRI":                    {afterStart("", "is-active) [ $3 = containerd ] ;; show) case $5 in kubelet) echo 9 ;; *) echo 0 ;; esac", `"command failed" err="failed to run Kubelet: validate service connection: validate CRI v1 runtime API for endpoint \"unix:///run/containerd/containerd.sock\": rpc error"`), "failed reason=containerd node=" + nodeName},
	"a certificate that is held":                       {afterStart("[kubelet-check] The kubelet is healthy after 500ms\n[kubelet-start] Waiting for the kubelet to perform the TLS Bootstrap\n", "show) echo 0", ""), "failed reason=csr node=" + nodeName},
	"containerd is gone before the join":               {kubeadmSays("[preflight] Some fatal errors occurred:\n\t[ERROR CRI]: could not connect to the container runtime: failed to create new CRI runtime service\n\t[ERROR ContainerRuntimeVersion]: x"), "failed reason=containerd node=" + nodeName},
	"no DNS name":                                      {kubeadmSays(cannotReach("dial tcp: lookup k8s.example.net on 10.0.0.2:53: no such host")), "failed reason=dns node=" + nodeName},
	"a resolver that does not answer":                  {kubeadmSays(cannotReach("dial tcp: lookup k8s.example.net on 10.0.0.2:53: read udp 10.0.0.7:4000->10.0.0.2:53: i/o timeout")), "failed reason=dns node=" + nodeName},
	"packets that are dropped":                         {both(getent(0), kubeadmSays(cannotReach("net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)"))), "failed reason=endpoint-timeout node=" + nodeName},
	"packets that are dropped, TCP":                    {both(getent(0), kubeadmSays(cannotReach("dial tcp 10.0.0.4:6443: i/o timeout"))), "failed reason=endpoint-timeout node=" + nodeName},
	"a resolver that is slower than kubeadm":           {both(getent(2), kubeadmSays(cannotReach("context deadline exceeded"))), "failed reason=dns node=" + nodeName},
	"no route":                                         {kubeadmSays(cannotReach("dial tcp 10.0.0.4:6443: connect: no route to host")), "failed reason=endpoint-route node=" + nodeName},
	"a proxy in the way":                               {kubeadmSays(cannotReach("proxyconnect tcp: dial tcp 10.0.0.9:3128: connect: connection refused")), "failed reason=endpoint-proxy node=" + nodeName},
	"a web server at the endpoint":                     {kubeadmSays(cannotReach("http: server gave HTTP response to HTTPS client")), "failed reason=endpoint-other node=" + nodeName},
	"a balancer without members":                       {kubeadmSays(cannotReach("EOF")), "failed reason=endpoint-other node=" + nodeName},
	"a certificate of other names":                     {kubeadmSays(cannotReach("tls: failed to verify certificate: x509: certificate is valid for 10.0.0.4, not 1.2.3.4")), "failed reason=server-name node=" + nodeName},
	"a server certificate that has ended":              {both(tool("curl", curlDate("now")), kubeadmSays(cannotReach(notYet))), "failed reason=server-expired node=" + nodeName},
	"a clock an hour behind":                           {both(tool("curl", curlDate("now + 1 hour")), kubeadmSays(cannotReach(notYet))), "failed reason=clock clock=-"},
	"a clock a day ahead, and a token that ended":      {both(tool("curl", curlDate("now - 1 day")), kubeadmSays(`could not find a JWS signature in the cluster-info ConfigMap for token ID "abcdef"`)), "failed reason=join-token clock=8"},
	"cluster-info is not public":                       {kubeadmSays(cannotReach(`configmaps "cluster-info" is forbidden: User "system:anonymous" cannot get resource`)), "failed reason=cluster-info-closed node=" + nodeName},
	"a token without rights":                           {kubeadmSays(`error: unable to fetch the kubeadm-config ConfigMap: failed to get config map: configmaps "kubeadm-config" is forbidden: User "system:bootstrap:abcdef" cannot get resource`), "failed reason=token-refused node=" + nodeName},
	"kubeadm newer than the cluster":                   {kubeadmSays("this version of kubeadm only supports deploying clusters with the control plane version >= 1.35.0. Current version: v1.30.14"), "failed reason=version-skew node=" + nodeName},
	"kubeadm older than the cluster":                   {kubeadmSays(`error: unable to fetch the kubeadm-config ConfigMap: failed to decode cluster configuration data: no kind "ClusterConfiguration" is registered for version "kubeadm.k8s.io/v1beta4"`), "failed reason=version-skew node=" + nodeName},
	"a kubelet older than kubeadm":                     {kubeadmSays("[preflight] Some fatal errors occurred:\n\t[ERROR KubeletVersion]: Kubelet version \"1.30.0\" is lower than kubeadm can support. Please upgrade kubelet"), "failed reason=version-skew node=" + nodeName},
	"a host name that no DNS knows beside a wrong pin": {kubeadmSays("\t[WARNING Hostname]: hostname \"x\": dial tcp: lookup x on 10.0.0.2:53: no such host\ncluster CA found in cluster-info ConfigMap is invalid: none of the public keys are pinned"), "failed reason=ca-pin node=" + nodeName},
	"a join that hangs": {func(p *play) {
		p.env = append(p.env, "JOIN_TRY=1")
		p.put("hangs", "")
	}, "failed reason=kubeadm-join node=" + nodeName},
	"words of kubeadm's own": {kubeadmSays("something new"), "failed reason=kubeadm-join node=" + nodeName},
}

// fat lets two downloads be larger than a small file system.
func (p *play) fat() {
	for path := range p.serve {
		for part, name := range map[string]string{"/containerd-": "containerd", "/cni-plugins-": "cni"} {
			if strings.Contains(path, part) {
				p.serve[path] = archive(p.t, map[string]string{"bin/containerd": containerd, "./loopback": note, "bin/big": noise(1 << 20)})
				p.spec.Downloads.SHA256[name+"/amd64"] = sum(p.serve[path])
			}
		}
	}
}

// lacks takes a program from the machine's image.
func (p *play) lacks(name string) {
	if err := os.Remove(filepath.Join(p.dir, "bin", name)); err != nil {
		p.t.Fatal(err)
	}
}

// TestFaults: each machine stops with its phase marker, is no Node, and has installed nothing
// that was not checked.
func TestFaults(t *testing.T) {
	for name, c := range faults {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			c.change(p)
			out, err := p.run()
			got, open := last(out), strings.Contains(c.want, " clock=")
			if err == nil || !strings.HasPrefix(got, "failed reason=") || got != c.want && !open || !strings.HasPrefix(got, c.want) {
				t.Errorf("%v, the last marker is %q, want %q\n%s", err, got, c.want, out)
			}
			said, _ := os.ReadFile(filepath.Join(p.dir, "console"))
			if len(said) > 0 && last(string(said)) != last(out) {
				t.Errorf("the console says %q", last(string(said)))
			}
			if d := console.Diagnose(out, false); d.Likely == "" || strings.HasPrefix(d.Likely, "for the reason") || strings.HasPrefix(d.Likely, "a command of") {
				t.Errorf("explain instance says no more than %q", d)
			}
			if p.has("etc/kubernetes/kubelet.conf") || p.has("evil") {
				t.Error("it has joined, or executed what it was told")
			}
			if strings.Contains(out, p.spec.Join.Token) || strings.Contains(p.calls(), p.spec.Join.Token) {
				t.Error("the token stands in the output or in arguments")
			}
			if file, ok := strings.CutPrefix(c.want, "failed reason=checksum file="); ok && (p.has("local/bin/"+file) || p.has("opt/cni/bin/loopback") && file == "cni") {
				t.Errorf("the corrupt %s is installed", file)
			}
		})
	}
	if len(faults) < 50 {
		t.Errorf("%d faults", len(faults))
	}
}

// bends are machines that are odd and join all the same.
var bends = map[string]func(*play){
	"plain":                    func(*play) {},
	"bash":                     func(p *play) { p.shell = "bash" },
	"no console":               func(p *play) { p.env = append(p.env, "JOIN_CONSOLE=/no/such") },
	"modules that do not load": tool("modprobe", "exit 1"),
	"a sysctl that is refused": tool("sysctl", "exit 1"),
	"swap that stays":          tool("swapoff", "exit 1"),
	"a dead mirror before": func(p *play) {
		p.spec.Downloads.Mirrors = append([]string{"http://127.0.0.1:9"}, p.spec.Downloads.Mirrors...)
	},
	"a corrupt mirror before": corruptFirst,
	"several domains of DHCP": meta("meta-data/local-hostname", 200, nodeName+" other.example.net"),
	"a host name in capitals": meta("meta-data/local-hostname", 200, strings.ToUpper(nodeName)),
	"containerd without CRI":  func(p *play) { p.put("etc/containerd/config.toml", "disabled_plugins = [\"cri\"]\n") },
	"plug-ins that were half": func(p *play) { p.put("opt/cni/bin/loopback", "half"); p.put("opt/cni/bin/.partial", "") },
	"hooks":                   func(p *play) { p.spec.BeforeJoin, p.spec.AfterJoin = []byte("#!/bin/sh\n:\n"), []byte("#!/bin/sh\n:") },
	"a mirror of registries":  func(p *play) { p.spec.RegistryMirrors = map[string]string{"registry.k8s.io": "https://m.example.net"} },
	"a proxy":                 func(p *play) { p.spec.Proxy.HTTPS = "http://127.0.0.1:9"; p.spec.Proxy.No = []string{"10.0.0.0/8"} },
	"OpenStack":               func(p *play) { p.spec.Cloud = "openstack" },
	"OpenStack, odd labels":   document(`{` + server + `, "name": "Worker-1", "availability_zone": "a b", "meta": {"autoscaler-agent.region": "x=y,z=1", "autoscaler-agent.type": "-m1"}}`),
	"the oldest Kubernetes":   func(p *play) { p.spec.KubernetesVersion = "v1.30.14"; p.publish() },
	"a package that is missing": func(p *play) {
		p.spec.KubernetesVersion = "v1.30.14"
		p.publish()
		p.lacks("conntrack")
		tool("apt-get", "[ \"$1\" = x ] || case $* in *install*) cp /srv/bin/iptables /srv/bin/conntrack ;; esac")(p)
	},
	"no system named": func(p *play) { p.spec.System = "" },
	"Amazon Linux":    func(p *play) { p.spec.System, p.system = "amazon-linux-2023", "amzn" },
	"Rocky":           func(p *play) { p.spec.System, p.system = "rocky-9", "rocky" },
	"Flatcar":         flatcar,
	"Flatcar, its own containerd": func(p *play) {
		flatcar(p)
		p.put("bin/containerd", containerd)
		p.put("bin/runc", note)
		p.spec.RegistryMirrors = map[string]string{"registry.k8s.io": "https://m.example.net"}
	},
	"Flatcar on OpenStack": func(p *play) { flatcar(p); p.spec.Cloud = "openstack" },
	"Flatcar, the oldest":  func(p *play) { p.spec.KubernetesVersion = "v1.30.14"; p.publish(); flatcar(p) },
}

// flatcar is a machine that cannot write below /usr. Ignition brings the script there; the
// format script holds the same one.
func flatcar(p *play) { p.spec.System, p.system, p.spec.Format = "flatcar", "flatcar", "script" }

// corruptFirst answers wrongly below the first mirror.
func corruptFirst(p *play) {
	p.spec.Downloads.Mirrors = []string{p.mirror.URL + "/bad", p.mirror.URL}
	instead("/bad/", text(200, "evil"))(p)
}

// TestBends: each machine joins, leaves no token and no half of anything behind, and a second
// run at the next boot does nothing.
func TestBends(t *testing.T) {
	for name, change := range bends {
		t.Run(name, func(t *testing.T) {
			p := newPlay(t)
			change(p)
			p.put("var/lib/autoscaler-agent-join/token", p.spec.Join.Token) // as a format may bring it
			out, err := p.run()
			if err != nil || !strings.Contains(out, "phase=joined\n") || strings.Contains(out, "phase=failed") {
				t.Fatalf("%v\n%s", err, out)
			}
			p.clean(t, out)
			if p.system == "flatcar" && (p.has("local/bin/kubelet") || !p.has("opt/bin/kubelet")) {
				t.Error("the programs of Flatcar belong to /opt/bin")
			}
			before, asked := p.state(), len(p.asks)
			again, err := p.run()
			if err != nil || last(again) != "already-joined" || len(p.asks) != asked {
				t.Errorf("the second run: %v, %d downloads\n%s", err, len(p.asks)-asked, again)
			}
			if after := p.state(); after != before {
				t.Errorf("the second run changes\n%s\nto\n%s", before, after)
			}
		})
	}
}

// TestCredentialsForECR: the program, its configuration and the kubelet's flags come together.
func TestCredentialsForECR(t *testing.T) {
	for system, bin := range map[string]string{"debian": "/usr/local/bin", "flatcar": "/opt/bin"} {
		p := newPlay(t)
		if system == "flatcar" {
			flatcar(p)
		}
		p.spec.Downloads.ECR = "v1.29.0"
		p.publish()
		if out, err := p.run(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		join, err := os.ReadFile(filepath.Join(p.dir, "join.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			NodeRegistration struct {
				KubeletExtraArgs []struct{ Name, Value string }
			}
		}
		if err := yaml.Unmarshal(join, &doc); err != nil {
			t.Fatal(err)
		}
		flags := map[string]string{}
		for _, arg := range doc.NodeRegistration.KubeletExtraArgs {
			flags[arg.Name] = arg.Value
		}
		if flags["image-credential-provider-bin-dir"] != bin || !p.has(strings.TrimPrefix(strings.TrimPrefix(bin, "/usr"), "/")+"/ecr-credential-provider") {
			t.Errorf("%s: the program is in %s, and not there for %v", system, bin, flags)
		}
		text, err := os.ReadFile(filepath.Join(p.dir, flags["image-credential-provider-config"]))
		if err != nil {
			t.Fatal(err)
		}
		var config kubeletconfig.CredentialProviderConfig
		if err := yaml.UnmarshalStrict(text, &config); err != nil || len(config.Providers) != 1 || config.Providers[0].Name != "ecr-credential-provider" || config.Providers[0].DefaultCacheDuration == nil {
			t.Errorf("%s: %v, %+v", system, err, config)
		}
	}
}

// clean: nothing of the join is left, and no secret stood where others read it.
func (p *play) clean(t *testing.T, out string) {
	t.Helper()
	for _, name := range []string{"var/lib/autoscaler-agent-join", "run/autoscaler-agent/join.yaml", "run/autoscaler-agent/kubeadm.log", "opt/cni/bin/.partial"} {
		if p.has(name) {
			t.Errorf("%s is left", name)
		}
	}
	if left, err := filepath.Glob(filepath.Join(p.dir, "tmp", "*")); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if strings.Contains(out+p.calls(), p.spec.Join.Token) {
		t.Error("the token stands in the output or in arguments")
	}
	join, err := os.ReadFile(filepath.Join(p.dir, "join.yaml"))
	if err != nil || strings.Contains(string(join), "x=y") || !strings.Contains(string(join), p.spec.Join.Token) {
		t.Errorf("kubeadm was given %v\n%s", err, join)
	}
}

// TestAfterJoinFails: the machine is a Node then, so that no boot runs the script again; the
// token does not stay for that.
func TestAfterJoinFails(t *testing.T) {
	p := newPlay(t)
	p.spec.AfterJoin = []byte("#!/bin/sh\nexit 9\n")
	p.put("var/lib/autoscaler-agent-join/token", p.spec.Join.Token)
	out, err := p.run()
	if err == nil || last(out) != "failed reason=after-join rc=9" || !strings.Contains(out, "phase=joined\n") {
		t.Errorf("%v\n%s", err, out)
	}
	if p.has("var/lib/autoscaler-agent-join/token") || p.has("var/lib/autoscaler-agent-join/worker.sh") {
		t.Error("the token is left")
	}
}

// TestKilledAnywhere: a machine that loses its power at any call of a program joins at its
// next boot, and is then what it would have been.
func TestKilledAnywhere(t *testing.T) {
	for _, system := range []string{"debian", "flatcar"} {
		t.Run(system, func(t *testing.T) {
			make := func() *play {
				p := newPlay(t)
				if system == "flatcar" {
					flatcar(p)
				}
				return p
			}
			whole := make()
			if out, err := whole.run(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			want, n := whole.state(), strings.Count(whole.calls(), "\n")
			joined := 0
			for at := 1; at <= n; at += stride(n) {
				p := make()
				out, err := p.run(fmt.Sprint("KILL_AT=", at))
				if err == nil {
					t.Fatalf("call %d: it was not killed\n%s", at, out)
				}
				if p.has("etc/kubernetes/kubelet.conf") { // systemd starts no unit then
					joined++
					continue
				}
				out, err = p.run()
				if err != nil || !strings.Contains(out, "phase=joined\n") {
					t.Errorf("after a kill at call %d: %v\n%s", at, err, out)
					continue
				}
				if differ := differences(p.state(), want); differ != "" {
					t.Errorf("after a kill at call %d:\n%s", at, differ)
				}
			}
			t.Logf("%d calls, every %d. killed, %d of them after the join", n, stride(n), joined)
		})
	}
}

// stride leaves calls out in a short run.
func stride(n int) int {
	if testing.Short() {
		return max(1, n/6)
	}
	return max(1, n/16)
}

// differences are the lines that one state has and the other has not, but for what a killed
// process cannot take away: the files in /tmp, and the one beside a program that was being placed.
func differences(got, want string) string {
	var b strings.Builder
	for _, side := range [][3]string{{"too much: ", got, want}, {"missing: ", want, got}} {
		for line := range strings.Lines(side[1]) {
			if !strings.HasPrefix(line, "tmp/") && !strings.Contains(line, ".new ") && !strings.Contains("\n"+side[2], "\n"+line) {
				b.WriteString(side[0] + line)
			}
		}
	}
	return b.String()
}
