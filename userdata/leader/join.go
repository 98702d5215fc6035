package leader

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

var (
	//go:embed steps/joinvalues.sh
	joinValueSteps string
	//go:embed steps/join.sh
	joinSteps string
	//go:embed steps/joined.sh
	joinedSteps string
	//go:embed steps/makevalues.sh
	makeValueSteps string
)

// joinValuesFile is where the script of makeJoinValues leaves the values and where the script of
// renderJoin looks for them.
const joinValuesFile = "/root/control-plane-join.env"

// renderJoin is the script that makes an empty machine a further machine of the control plane.
// The script holds no secret: it reads token and certificate key from a file of mode 0600 or from
// standard input, keeps them in memory (/run) for kubeadm join, and deletes the file after it.
func renderJoin(s Spec) ([]byte, error) {
	s = s.joining()
	if err := s.validate(); err != nil {
		return nil, err
	}
	s.Machine.ImageRepository, s.Machine.NodeIP = s.ImageRepository, s.nodeIP()
	install, err := s.Machine.Install(userdata.LeaderFiles, nil)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("#!/bin/sh\n# Made by autoscaler-agent leader-config --join: a further machine of the control plane, with Kubernetes " + s.Machine.KubernetesVersion + ".\n" +
		"# Run it as root. It reads its secrets from the file that is its argument; - is standard input.\nset -eu\n")
	b.WriteString("state=" + stateDir + "\n" + joinValueSteps)
	b.WriteString(install)
	b.WriteString("PROGRAMS=" + userdata.Quote(strings.Join(userdata.LeaderFiles, " ")) + "\n" + programSteps)
	b.WriteString("config=" + joinConfigurationFile + "\nmkdir -p /etc/kubernetes \"$state\"\n")
	_, steps := userdata.KubeletNodeIP(s.nodeIP())
	b.WriteString(steps)
	b.WriteString("join_config() {\ncat <<JOIN\n" + userdata.HereDocument(s.joinConfiguration()) + "JOIN\n}\n")
	b.WriteString(hook("before-init", s.BeforeInit))
	b.WriteString(joinSteps + readySteps + joinedSteps)
	b.WriteString(s.vip(adminConf))
	b.WriteString(kubeconfigSteps)
	b.WriteString(hook("after-init", s.AfterInit))
	b.WriteString(endSteps)
	b.WriteString(s.next())
	return []byte(b.String()), nil
}

// joining is s with networks of the cluster's IP version in the place of those that it has since its first machine.
func (s Spec) joining() Spec {
	s.PodSubnet, s.ServiceSubnet, s.DNSDomain, s.Network = DefaultPodSubnet, DefaultServiceSubnet, DefaultDNSDomain, "none"
	if strings.HasPrefix(s.Machine.NodeIP, "ipv6") || strings.Contains(s.AdvertiseAddress, ":") {
		s.PodSubnet, s.ServiceSubnet = "fd00:10:244::/56", "fd00:10:96::/112"
	}
	return s
}

// joinConfiguration is kubeadm's for a further machine of the control plane, with ${JOIN_TOKEN},
// ${JOIN_CERT_HASH} and ${CERTIFICATE_KEY} in the places of its secrets.
func joinConfiguration(s Spec) ([]byte, error) {
	if _, err := renderJoin(s); err != nil { // judges all of it
		return nil, err
	}
	return []byte(userdata.HereDocument(s.joining().joinConfiguration())), nil
}

// joinConfigurationFile is where kubeadm reads the join's configuration: in memory, while it runs.
const joinConfigurationFile = "/run/autoscaler-agent-leader/kubeadm-join.yaml"

// joinConfiguration is kubeadm's, with references to the shell's variables.
func (s Spec) joinConfiguration() object {
	controlPlane := object{"certificateKey": userdata.Ref("CERTIFICATE_KEY")}
	if a := s.advertised(); a != "" {
		controlPlane["localAPIEndpoint"] = object{"advertiseAddress": a}
	}
	bootstrap := object{"apiServerEndpoint": s.endpoint(), "token": userdata.Ref("JOIN_TOKEN"), "caCertHashes": []string{userdata.Ref("JOIN_CERT_HASH")}}
	return object{
		"apiVersion": "kubeadm.k8s.io/" + s.api(), "kind": "JoinConfiguration",
		"discovery":        object{"bootstrapToken": bootstrap},
		"controlPlane":     controlPlane,
		"nodeRegistration": s.registration(userdata.Ref("NODE_IPS")),
	}
}

// makeJoinValues is the script that a machine of the control plane runs for each machine that
// joins: it uploads the cluster's certificates, encrypted, and writes the key and a token into a
// file of mode 0600.
func makeJoinValues(version string) ([]byte, error) {
	if _, err := (userdata.Spec{System: "debian", KubernetesVersion: version, Join: userdata.Join{Endpoint: "k8s.example.net:6443"}}).Install(userdata.LeaderFiles, nil); err != nil {
		return nil, fmt.Errorf("leader: %w", err)
	}
	return []byte(strings.NewReplacer("@API@", userdata.KubeadmAPI(version), "@VERSION@", version, "@FILE@", joinValuesFile).Replace(makeValueSteps)), nil
}
