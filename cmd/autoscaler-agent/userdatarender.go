package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/flagvalue"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/joinfile"
	"github.com/autoscaler-agent/autoscaler-agent/internal/atomicfile"
	"github.com/autoscaler-agent/autoscaler-agent/internal/textfile"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

const renderExamples = `  # The join information that the running agent publishes, to a file that only
  # you can read
  autoscaler-agent userdata render -o worker.sh

  # A group for batch work
  autoscaler-agent userdata render --label example.net/pool=batch \
      --taint example.net/dedicated=batch:NoSchedule -o batch.sh

  # For an image of Flatcar, in the format of Ignition
  autoscaler-agent userdata render --os flatcar --arch amd64 -o worker.ign

  # Without access to the internet
  autoscaler-agent userdata render --mirror https://mirror.example.net \
      --registry-mirror registry.k8s.io=https://mirror.example.net/v2 -o worker.sh

  # On AWS, without a secret in the user data
  autoscaler-agent userdata render --attest leader.example.net:6444 -o worker.sh

  # For servers of OpenStack: the agent puts a token of its own into each
  autoscaler-agent userdata render --cloud openstack -o /etc/autoscaler-agent/worker.sh

  # The same user data for another version of Kubernetes
  autoscaler-agent userdata render --from worker.sh --kubernetes-version v1.36.3 -o worker.sh

  # A new version of the launch template
  aws ec2 create-launch-template-version --launch-template-name workers \
      --source-version '$Latest' \
      --launch-template-data "{\"UserData\":\"$(base64 -w0 worker.sh)\"}"`

func userdataRenderCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "render",
		Short: "Render the user data of a launch template",
		Long: `Make the user data of a launch template: what a machine needs at its first boot to
install what is missing and to join the cluster.

The output holds the join token, or with --attest no secret at all: the machine gets its
token from the leader. The amounts that the kubelets reserve are those of
AUTOSCALER_KUBELET_* in the agent's own configuration (--env-file and the
environment), because the agent computes from them what a new machine can hold. A flag
with another value wins, with a warning.

With --from the settings are those that the user data in a file was rendered with, and
the programs that surround Kubernetes have this release's versions where no flag chose
others.`,
		Example:           renderExamples,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := newUserdataFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if f.flags.Changed("ca-file") && f.attest == "" {
			return usagef(c, "--ca-file: only --attest uses it: give both or neither")
		}
		if other := f.againstFrom(); f.from != "" && other != "" {
			return usagef(c, "--%s does not go with --from, which takes it from the user data: leave one out", other)
		}
		script, differs, err := f.make(c)
		for _, text := range differs {
			if err != nil {
				break // the mistake is what has to be read
			}
			fmt.Fprintf(c.ErrOrStderr(), "%s: warning: %s\n", c.CommandPath(), text)
		}
		switch {
		case err != nil && f.typed(err):
			return misused("userdata render", err)
		case err != nil:
		case f.output != "":
			_, err = atomicfile.Write(f.output, script, 0o600)
		default:
			_, err = c.OutOrStdout().Write(script)
		}
		if err != nil {
			return failed("userdata render", err)
		}
		return nil
	}
	return c
}

// reserve takes the settings without a flag from the agent's own configuration, so that
// the kubelets reserve the amounts that the agent computes with. differs names the flags
// with another value.
func (f *userdataFlags) reserve() (differs []string, err error) {
	if err := config.LoadEnvFile(*f.envFile); err != nil {
		return nil, fmt.Errorf("read the agent's kubelet settings: %w", err)
	}
	kubelet, err := config.LoadKubelet()
	if err != nil {
		return nil, err
	}
	asked, theirs := f.reserved, kubelet.Reservation()
	f.reserved = theirs
	f.flags.Visit(func(given *pflag.Flag) {
		switch given.Name {
		case "max-pods":
			f.reserved.MaxPods = asked.MaxPods
		case "kube-reserved":
			f.reserved.Kube = asked.Kube
		case "system-reserved":
			f.reserved.System = asked.System
		case "eviction-hard":
			f.reserved.Eviction, f.reserved.EvictionStoragePercent = asked.Eviction, asked.EvictionStoragePercent
		default:
			return
		}
		if !reflect.DeepEqual(f.reserved, theirs) {
			variable := "AUTOSCALER_KUBELET_" + strings.ToUpper(strings.ReplaceAll(given.Name, "-", "_"))
			differs = append(differs, fmt.Sprintf("--%s differs from the agent's own setting: set %s to the same value in the agent's configuration", given.Name, variable))
		}
		theirs = f.reserved
	})
	return differs, nil
}

// make is the user data that the flags ask for. differs are warnings.
func (f *userdataFlags) make(c *cobra.Command) (script []byte, differs []string, err error) {
	if f.from != "" {
		script, err = f.again(c)
		return script, nil, err
	}
	if differs, err = f.reserve(); err == nil {
		script, err = f.render(c.Context())
	}
	return script, differs, err
}

func (f *userdataFlags) render(ctx context.Context) ([]byte, error) {
	perServer := userdata.TokenPerServer(f.cloud) && !f.sharedToken
	join, err := joinfile.Read(f.joinFile, f.attest == "" && !perServer)
	if err != nil {
		return nil, err
	}
	if f.serverVersion, err = f.server.Version(ctx, join["JOIN_KUBERNETES_VERSION"]); err != nil {
		return nil, err
	}
	if f.version != "" {
		join["JOIN_KUBERNETES_VERSION"] = f.version
	}
	if f.endpoint != "" {
		join["JOIN_ENDPOINT"] = f.endpoint
	}
	if err := f.readFiles(); err != nil {
		return nil, err
	}
	token := join["JOIN_TOKEN"]
	if f.attest != "" {
		token = ""
	} else if perServer {
		token = userdata.TokenPlaceholder
	}
	return userdata.Render(f.spec(join, token))
}

// typed tells whether a flag is at fault: not the join file, nor a file that cannot be read.
func (f *userdataFlags) typed(err error) bool {
	published := map[string]string{"join.token": "", "join.caCertHashes": "", "join.endpoint": "endpoint", "kubernetesVersion": "kubernetes-version"}
	return slices.ContainsFunc(config.Flatten(err), func(e error) bool {
		fault, ok := errors.AsType[userdata.Fault](e)
		flag, inFile := published[fault.Field]
		return ok && (!inFile || flag != "" && f.flags.Changed(flag))
	})
}

// spec is what the flags ask for. f.readFiles comes first.
func (f *userdataFlags) spec(join map[string]string, token string) userdata.Spec {
	return userdata.Spec{
		Cloud: f.cloud, System: f.system, Arch: f.arch, Format: f.format,
		KubernetesVersion: join["JOIN_KUBERNETES_VERSION"], APIServerVersion: f.serverVersion,
		Join: userdata.Join{
			Endpoint:     join["JOIN_ENDPOINT"],
			Token:        token,
			CACertHashes: flagvalue.List(join["JOIN_CERT_HASH"]),
			Attest:       f.attest,
			CACert:       f.caCert,
		},
		Reservation:           f.reserved,
		Labels:                f.labels,
		Taints:                f.taints,
		ClusterDNS:            flagvalue.List(f.dns),
		ExternalCloudProvider: f.externalCloud,
		IgnorePreflight:       flagvalue.List(f.ignorePreflight),
		Downloads:             f.downloads,
		Proxy:                 f.proxy,
		RegistryMirrors:       f.registryMirrors,
		ImageRepository:       f.imageRepository,
		InstanceStore:         f.instanceStore,
		BeforeJoin:            f.hooks[0],
		AfterJoin:             f.hooks[1],
	}
}

// readFiles reads what flags name by file.
func (f *userdataFlags) readFiles() error {
	f.downloads.Mirrors, f.downloads.SHA256, f.proxy.No = flagvalue.List(f.mirrors), f.checksums, flagvalue.List(f.noProxy)
	for i, file := range []string{f.beforeJoin, f.afterJoin} {
		if file == "" {
			continue
		}
		text, err := textfile.Read(file, mostText)
		if err != nil {
			return fmt.Errorf("read a hook: %w", err)
		}
		f.hooks[i] = text
	}
	if f.attest != "" {
		text, err := textfile.Read(f.caFile, mostText)
		if err != nil {
			return fmt.Errorf("read the cluster's CA: %w: name its certificate with --ca-file", err)
		}
		f.caCert = text
	}
	if f.versions == "" {
		return nil
	}
	text, err := textfile.Read(f.versions, mostText)
	if err != nil {
		return fmt.Errorf("read the table of versions: %w: make versions writes one", err)
	}
	f.downloads.Table, err = userdata.ParseTable(string(text))
	return err
}
