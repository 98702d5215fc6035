package leader

import (
	_ "embed"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

var (
	//go:embed steps/programs.sh
	programSteps string
	//go:embed steps/init.sh
	initSteps string
	// readySteps wait for the API server, after an init as after a join.
	//go:embed steps/ready.sh
	readySteps string
	// kubeconfigSteps come when the machine is one of the control plane.
	//go:embed steps/kubeconfig.sh
	kubeconfigSteps string
	//go:embed steps/end.sh
	endSteps string
)

const (
	endOfFile = "END-OF-FILE"
	// configurationFile is where the script leaves kubeadm's configuration.
	configurationFile = "/etc/kubernetes/kubeadm-init.yaml"
	// stateDir remembers that kubeadm init has succeeded.
	stateDir = "/var/lib/autoscaler-agent-leader"
)

// Render is the script that makes a machine the leader. It can be run again: what is done
// stays, and what was applied is applied anew.
func Render(s Spec) ([]byte, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	files, err := s.addons()
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for _, f := range files {
		sums[f.key()] = f.SHA256
	}
	s.Machine.ImageRepository, s.Machine.NodeIP = s.ImageRepository, s.nodeIP()
	install, err := s.Machine.Install(userdata.LeaderFiles, sums)
	if err != nil {
		return nil, err
	}
	config, err := s.configuration()
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("#!/bin/sh\n# Made by autoscaler-agent leader-config: the leader of a cluster with Kubernetes " + s.Machine.KubernetesVersion + ". Run it as root.\nset -eu\n")
	b.WriteString(install)
	b.WriteString("PROGRAMS=" + userdata.Quote(strings.Join(userdata.LeaderFiles, " ")) + "\n" + programSteps)
	b.WriteString("state=" + stateDir + "\nconfig=" + configurationFile + "\nmkdir -p /etc/kubernetes \"$state\"\ncat >\"$config\" <<'" + endOfFile + "'\n" + string(config) + endOfFile + "\n")
	if _, steps := userdata.KubeletNodeIP(s.nodeIP()); steps != "" {
		b.WriteString(steps + "sed -i \"s/[$]{NODE_IPS}/$NODE_IPS/\" \"$config\"\n")
	}
	b.WriteString(s.vip(superAdminConf))
	b.WriteString(hook("before-init", s.BeforeInit))
	b.WriteString(initSteps + readySteps)
	b.WriteString(s.vip(adminConf))
	b.WriteString("phase addons\n" + s.network(files) + s.cloudController(files) + s.metrics())
	b.WriteString(kubeconfigSteps)
	b.WriteString(hook("after-init", s.AfterInit))
	b.WriteString(endSteps)
	b.WriteString(s.next())
	return []byte(b.String()), nil
}

// next is the last line: what to type now.
func (s Spec) next() string {
	next := "autoscaler-agent install"
	if s.NodeName != "" { // the agent approves the certificate of its own Node's kubelet
		next += " --set AUTOSCALER_NODE_NAME=" + s.NodeName
	}
	return "echo " + userdata.Quote("next: "+next) + "\n"
}

// hook runs a script of the operator. Its own lines cannot end the here-document: BadHook
// refuses them.
func hook(name string, text []byte) string {
	if len(text) == 0 {
		return ""
	}
	body := string(text)
	if !strings.HasSuffix(body, "\n") {
		body += "\n"
	}
	file := "\"$state/" + name + "\""
	return "phase " + name + "\ncat >" + file + " <<'END-OF-HOOK'\n" + body + "END-OF-HOOK\nchmod 700 " + file + "\n" + file + " || die \"reason=" + name + " rc=$?\"\n"
}
