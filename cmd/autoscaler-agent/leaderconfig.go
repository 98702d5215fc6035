package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/flagvalue"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/renderflags"
	"github.com/autoscaler-agent/autoscaler-agent/internal/atomicfile"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
	"github.com/autoscaler-agent/autoscaler-agent/userdata/leader"
)

// leaderFlags are the flags of leader-config.
type leaderFlags struct {
	flags   *pflag.FlagSet
	machine *renderflags.Flags // programs, mirrors, proxy and hooks
	spec    leader.Spec

	sans, format, output, ignored string
	join                          bool
}

func leaderConfigCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "leader-config",
		Short: "Render what makes an empty machine the leader of a new cluster, or a further one of it",
		Long: `Render what makes an empty machine the leader of a new cluster: a script that installs
the programs, runs kubeadm init with the settings that this agent needs, and applies the
network of the pods, metrics-server and, where asked, the cloud controller manager. Each
file that it fetches has a pinned SHA-256. --format kubeadm gives the configuration of
kubeadm init alone, and --format downloads lists the files for a mirror.

With --join the machine becomes a further one of the control plane. Its secrets come from
a file that the script of --format values makes, or from standard input (docs/ha.md).

The output holds no secret. Run the script as root on the machine, then install the agent.`,
		Example: `  autoscaler-agent leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 -o leader.sh
  sudo sh leader.sh && sudo autoscaler-agent install

  # Flatcar on AWS, with the cloud controller manager
  autoscaler-agent leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 \
      --os flatcar --cloud-controller aws --node-name ip-10-0-0-10.eu-west-1.compute.internal -o leader.sh

  # The second and the third machine of the control plane
  autoscaler-agent leader-config --join --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 -o join.sh
  sudo sh join.sh /root/control-plane-join.env

  # Only what kubeadm reads
  autoscaler-agent leader-config --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3 --format kubeadm`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := newLeaderFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if f.machine.Endpoint == "" && f.format != "values" || f.machine.Version == "" {
			return usagef(c, "give --endpoint and --kubernetes-version, for example --endpoint k8s.example.net:6443 --kubernetes-version v1.36.3")
		}
		if f.spec.CloudController == "aws" && f.spec.NodeName == "" && f.format != "values" {
			return usagef(c, "--cloud-controller aws needs --node-name: give the machine's private DNS name, for example ip-10-0-0-10.eu-west-1.compute.internal")
		}
		if err := f.machine.ReadFiles(); err != nil {
			return failed("leader-config", err)
		}
		out, err := f.render()
		switch {
		case err != nil:
			return misused("leader-config", renderflags.Named(c.Flags(), err))
		case f.output != "":
			_, err = atomicfile.Write(f.output, out, 0o600)
		default:
			_, err = c.OutOrStdout().Write(out)
		}
		if err != nil {
			return failed("leader-config", err)
		}
		return nil
	}
	return c
}

func newLeaderFlags(c *cobra.Command) *leaderFlags {
	f := &leaderFlags{flags: c.Flags(), machine: renderflags.NewLeader(c)}
	f.flags.StringVar(&f.machine.Endpoint, "endpoint", "", "`host:port` of the API server that outlives this machine: a DNS name or a fixed address")
	f.flags.StringVar(&f.machine.Version, "kubernetes-version", "", "`version` of Kubernetes, for example v1.36.3")
	f.flags.StringVar(&f.format, "format", "script", "what to print: script, kubeadm or downloads, with --join also values (`form`)")
	f.flags.BoolVar(&f.join, "join", false, "render what makes the machine a further one of the control plane")
	f.flags.StringVar(&f.machine.System, "os", "debian", "operating `system` of the leader: debian, ubuntu or flatcar")
	f.flags.StringVar(&f.machine.Arch, "arch", "", "`architecture` of the leader: amd64 or arm64 (default both)")
	f.flags.StringVar(&f.sans, "cert-san", "", "comma-separated further `names` and addresses of the API server")
	f.flags.StringVar(&f.spec.NodeName, "node-name", "", "`name` of the leader's Node (default its host name); with --cloud-controller aws its private DNS name")
	f.flags.StringVar(&f.spec.AdvertiseAddress, "advertise-address", "", "the leader's own `address` (default the one of its default route)")
	f.flags.StringVar(&f.machine.NodeIP, "node-ip", "", "which addresses of the machine its Node has, by `families` in their order: "+strings.Join(userdata.NodeIPs, ", ")+" (default those of --pod-subnet; give it with --join)")
	f.flags.StringVar(&f.spec.ClusterName, "cluster-name", "", "kubeadm's `name` of the cluster (default kubernetes)")
	f.flags.StringVar(&f.spec.PodSubnet, "pod-subnet", leader.DefaultPodSubnet, "`network` of the pods")
	f.flags.StringVar(&f.spec.ServiceSubnet, "service-subnet", leader.DefaultServiceSubnet, "`network` of the Services")
	f.flags.StringVar(&f.spec.DNSDomain, "dns-domain", leader.DefaultDNSDomain, "the cluster's own DNS `domain`")
	f.flags.StringVar(&f.spec.ImageRepository, "image-repository", "", "`registry` in place of registry.k8s.io, as registry.example.net/kubernetes")
	f.flags.StringVar(&f.spec.ImagePullPolicy, "image-pull-policy", "", "Never (`policy`): every image was imported before")
	f.flags.StringVar(&f.spec.KeyAlgorithm, "key-algorithm", "", "`algorithm` of the cluster's keys: "+strings.Join(leader.KeyAlgorithms, ", ")+" (default kubeadm's)")
	f.flags.StringVar(&f.spec.Network, "network", "flannel", "`network` plug-in of the pods: "+strings.Join(leader.Networks, ", "))
	f.flags.StringVar(&f.spec.CloudController, "cloud-controller", "", "cloud controller manager of `cloud`: "+strings.Join(leader.CloudControllers, " or ")+" (default none); give the workers --external-cloud-provider")
	f.flags.StringVar(&f.spec.KubeVIPInterface, "kube-vip", "", "have kube-vip hold the endpoint's address on this network `interface` of each control-plane machine (default: DNS or a load balancer does)")
	f.flags.StringVar(&f.spec.KubeVIPDigest, "kube-vip-digest", "", "`digest` that pins kube-vip's image beside its version, as sha256:...")
	f.flags.BoolVar(&f.spec.WithoutMetrics, "without-metrics-server", false, "leave metrics-server out")
	f.flags.StringVar(&f.ignored, "ignore-preflight-errors", "", "comma-separated `checks` of kubeadm whose failure only warns")
	f.flags.StringVar(&f.machine.BeforeJoin, "before-init", "", "`file` with a script that runs as root right before kubeadm init")
	f.flags.StringVar(&f.machine.AfterJoin, "after-init", "", "`file` with a script that runs as root at the end")
	f.flags.VarP((*flagvalue.File)(&f.output), "out", "o", "write to `file`, with mode 0600, instead of standard output")
	for name, values := range map[string][]string{
		"os": {"debian", "ubuntu", "flatcar"}, "arch": userdata.Arches, "format": leader.Formats, "node-ip": userdata.NodeIPs,
		"network": leader.Networks, "cloud-controller": leader.CloudControllers, "key-algorithm": leader.KeyAlgorithms, "image-pull-policy": {"Never"},
	} {
		words(c, name, values...)
	}
	return f
}

// render is what the flags ask for. f.machine.ReadFiles comes first.
func (f *leaderFlags) render() ([]byte, error) {
	for _, name := range leader.OfTheCluster {
		if f.join && f.flags.Changed(name) {
			return nil, fmt.Errorf("--%s is the cluster's since its first machine: leave it out with --join", name)
		}
	}
	if f.join && f.format == "values" {
		var idle error
		f.flags.Visit(func(flag *pflag.Flag) {
			if !slices.Contains([]string{"join", "format", "kubernetes-version", "out"}, flag.Name) {
				idle = fmt.Errorf("--%s changes nothing of --format values: leave it out, and give it with --format script", flag.Name)
			}
		})
		if idle != nil {
			return nil, idle
		}
	}
	s := f.spec
	s.Machine = f.machine.Leader()
	s.CertSANs, s.BeforeInit, s.AfterInit = flagvalue.List(f.sans), s.Machine.BeforeJoin, s.Machine.AfterJoin
	s.Machine.BeforeJoin, s.Machine.AfterJoin, s.Machine.IgnorePreflight = nil, nil, flagvalue.List(f.ignored)
	return leader.Format(s, f.format, f.join)
}
