package console

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// cause is what a reason of the user data means.
type cause struct{ reason, likely, remedy string }

// causes are told by the first whose reason the mark's begins with.
var causes = []cause{
	{"checksum", "a file is not the one whose checksum is pinned: a mirror has another one, or the transfer broke", "compare the file of the mirror with the pinned SHA-256"},
	{"download", "a file could not be fetched", "try the URL from the same subnet; routes, NAT, proxy, security groups"},
	{"package-index", "the distribution's package index could not be read", "try it from the same subnet; or bake the package into the image"},
	{"package", "a package could not be installed", "try it from the same subnet; or bake the package into the image"},
	{"containerd-config", "containerd does not run: its program does not fit the machine", "another --containerd; or bake it into the image"},
	{"containerd", "containerd crashes or does not answer at its socket", "on the machine journalctl -u containerd; its configuration, or another --containerd"},
	{"services", "systemd could not enable or start containerd or the kubelet", "on the machine journalctl -u containerd -u kubelet"},
	{"install", "a setting or a directory of the system could not be written", "the image: its file systems must be writable"},
	{"disks-too-few", "the machine has fewer disks of its own than the layout wants", "another instance type, or userdata render --instance-store raid0"},
	{"disk-not-blank", "a disk of the machine has data on it already", "userdata render formats blank disks alone: an instance that was stopped has new ones"},
	{"disks", "the machine's own disks could not be made a file system", "look at the console itself; the instance type"},
	{"no-space", "the disk is full", "give the launch template or flavor a larger root disk"},
	{"architecture", "the machine's architecture is not served", "amd64 and arm64 are"},
	{"system", "the image is of another system than the user data was rendered for", "userdata render --os, or another image"},
	{"attest-unreachable", "the leader's attest listener does not answer, or its certificate is not of the cluster's CA", "security group of the leader; AUTOSCALER_BOOTSTRAP_ATTEST_*; autoscaler-agent check"},
	{"attest-role", "the machine has no instance role", "give the launch template an instance profile"},
	{"attest-key", "neither openssl nor ssh-keygen could make a key", "put one of them into the image"},
	{"attest", "the leader refused the machine's attestation", "docs/attested-join.md has the rule; the agent's journal has the reason"},
	{"imds", "the metadata service did not answer", "IMDSv2 must be enabled for the machine"},
	{"metadata", "neither metadata service nor configuration drive answered", "look at the network's metadata service, or set config_drive"},
	{"bad-metadata", "the metadata service told something that cannot be a name or an ID", "look at the server's name and at the VPC's DHCP options"},
	{"token-file", "the token file of the user data is missing", "render the user data anew"},
	{"no-token", "no join token was published when the machine asked", "autoscaler-agent token list; the agent's journal"},
	{"join-token", "the token of the user data has ended, was revoked or is of another cluster: cluster-info is not signed with it", "autoscaler-agent token list; render the user data anew where the token is pasted into it"},
	{"token-refused", "the API server refuses the token's user: the token has ended meanwhile, or its group lacks rights", "autoscaler-agent check --join; kubectl apply -f rbac.yaml"},
	{"cluster-info-signature", "the token's secret is not the one that cluster-info is signed with, or somebody changed cluster-info on its way", "autoscaler-agent check --join, from the same subnet; render the user data anew"},
	{"ca-pin", "the pin in the user data is not that of the cluster's CA", "autoscaler-agent check --join; render the user data anew"},
	{"cluster-info-closed", "cluster-info cannot be read without credentials, or is missing", "kubeadm init phase bootstrap-token; the API server's --anonymous-auth"},
	{"cluster-info-changed", "cluster-info was another one when it was read with the cluster's CA: somebody may stand between the machine and the API server", "autoscaler-agent check --join, from the same subnet"},
	{"preflight", "kubeadm's preflight checks failed", "the checks that the mark names; the image"},
	{"dns", "the machine's DNS does not resolve the name of the endpoint", "the VPC's or network's resolver, the private zone; or an IP address as AUTOSCALER_BOOTSTRAP_ENDPOINT"},
	{"endpoint-refused", "the endpoint refuses the connection: no API server listens at that address and port", "the port; the load balancer's listener; autoscaler-agent check --join"},
	{"endpoint-timeout", "the endpoint does not answer: something drops the packets on the way", "security groups, network policy and routes between the machine's subnet and the endpoint; the load balancer's healthy members"},
	{"endpoint-route", "the machine has no route to the endpoint", "the subnet's route table, NAT, the machine's own network configuration"},
	{"endpoint-proxy", "the proxy does not let the machine reach the endpoint", "the proxy; userdata render --no-proxy with the endpoint's host"},
	{"endpoint-other", "what answers at the endpoint is no API server, or a load balancer that has none behind it", "the endpoint's port; the load balancer's listener and healthy members"},
	{"endpoint", "the API server's endpoint does not answer", "security groups, the load balancer; autoscaler-agent check --join"},
	{"server-name", "the API server's certificate is not valid for the endpoint's name or address", "AUTOSCALER_BOOTSTRAP_ENDPOINT must be one of its names, or add it to apiServer.certSANs; autoscaler-agent check"},
	{"server-expired", "the API server's certificate has expired", "kubeadm certs check-expiration; kubeadm certs renew apiserver"},
	{"clock", "the machine's clock is wrong: the API server's certificate is not valid yet, or not any more, by that clock", "NTP or chrony of the image; the hypervisor's clock"},
	{"version-skew", "the machine's Kubernetes version does not fit that of the cluster", "userdata render --kubernetes-version with the API server's minor version, or up to three older"},
	{"csr", "the kubelet has asked for its client certificate and does not get it: the request is held, denied, or not signed", "autoscaler-agent explain csr NAME; kubectl get csr"},
	{"kubelet-cgroup-v1", "the kubelet ends: this version does not run on cgroup v1, which the image boots with", "an image with cgroup v2, or failCgroupV1: false in kubelet-config"},
	{"kubelet-swap", "the kubelet ends because the machine has swap on", "an image without swap (zram included), or failSwapOn: false in kubelet-config"},
	{"kubelet-config", "the kubelet ends because it does not take its flags or its configuration", "on the machine journalctl -u kubelet; the ConfigMap kube-system/kubelet-config"},
	{"kubelet", "the kubelet crashes or does not become healthy", "on the machine journalctl -u kubelet"},
	{"node-name", "a Ready Node has the machine's name already: two machines have one name", "autoscaler-agent explain node NAME; give each machine a name of its own"},
	{"kubeadm-join", "kubeadm join failed for a reason that the script does not know", "the console itself has kubeadm's words; autoscaler-agent check --join; autoscaler-agent explain csr NAME"},
	{"before-join", "the operator's own hook failed", "look at the hook"},
	{"after-join", "the operator's own hook failed", "look at the hook"},
}

// curls are curl's exit codes for a download that failed.
var curls = map[string]string{
	"5": "the proxy's name does not resolve", "6": "the machine's DNS does not resolve the name of the site or mirror",
	"7": "the site or mirror refuses the connection, or there is no route to it", "22": "the site, the mirror or a proxy answers with an HTTP error such as 404 or 407",
	"28": "the site or mirror does not answer in time", "35": "the TLS handshake fails", "56": "the connection breaks, or the proxy refuses it",
	"60": "the site's certificate is not trusted, or not valid by the machine's clock", "97": "the proxy refuses the connection",
}

// failure tells what a reason means.
func failure(m Mark) (likely, remedy string) {
	reason := m.Values["reason"]
	likely, remedy = "for the reason "+reason, "look at the console itself"
	if reason == "" {
		return "a command of that phase failed", remedy
	}
	for _, c := range causes {
		if strings.HasPrefix(reason, c.reason) {
			likely, remedy = c.likely, c.remedy
			break
		}
	}
	if f := m.Values["file"]; f != "" {
		likely = f + ": " + likely
	}
	if how := curls[m.Values["curl"]]; how != "" {
		likely += ": " + how
	}
	switch m.Values["rule"] {
	case "":
	case "A4":
		likely, remedy = "the machine's clock is wrong: the leader refuses its attestation by rule A4", "NTP or chrony of the image; the hypervisor's clock"
	default:
		likely += " by rule " + m.Values["rule"]
	}
	if c := m.Values["checks"]; c != "" {
		likely += ": " + c
	}
	return likely + clockOff(m), remedy
}

// clockOff tells of a clock that differs from the API server's.
func clockOff(m Mark) string {
	seconds, err := strconv.Atoi(m.Values["clock"])
	if err != nil || seconds == 0 {
		return ""
	}
	if off := time.Duration(seconds) * time.Second; off < 0 {
		return fmt.Sprintf("; its clock is %s behind the API server's", -off)
	}
	return fmt.Sprintf("; its clock is %s ahead of the API server's", time.Duration(seconds)*time.Second)
}

// hanging is for a machine that is in the middle of something.
func hanging(m Mark) (likely, remedy string) {
	switch m.Phase {
	case "start", "install", "services", "disks":
		return "installing takes long, or hangs", "look at the console itself"
	case "download", "package":
		return "the site or mirror is slow, or swallows connections", "routes, NAT, proxy, security groups"
	case "metadata":
		return "the metadata service is not reached", "IMDSv2 and its hop limit; the network's metadata service"
	case "attest":
		switch r := m.Values["reason"]; r {
		case "":
			return "the leader does not answer", "security group of the leader; autoscaler-agent check"
		case "A4":
			return failure(Mark{Values: map[string]string{"reason": "attest", "rule": r}})
		default:
			return "the leader does not let it in yet: " + r, "docs/attested-join.md has the rule; the agent's journal has the reason"
		}
	case "token":
		return "it waits for a token to be published", "autoscaler-agent token list; the agent's journal"
	case "join", "retry":
		return "kubeadm waits for the API server, for the token's signature or for the approval of its client certificate", "autoscaler-agent check --join; kubectl get csr; autoscaler-agent explain csr NAME"
	}
	return "", ""
}
