package renderflags

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/autoscaler-agent/autoscaler-agent/agent/config"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/flagvalue"
	"github.com/autoscaler-agent/autoscaler-agent/cmd/autoscaler-agent/joinfile"
	"github.com/autoscaler-agent/autoscaler-agent/internal/textfile"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// Apart says which flags were given that do not go together; empty: none.
func (f *Flags) Apart() string {
	if other := f.againstFrom(); f.from != "" && other != "" {
		return "--" + other + " does not go with --from, which takes it from the user data: leave one out"
	}
	if f.flags.Changed("ca-file") && f.attest == "" {
		return "--ca-file: only --attest uses it: give both or neither"
	}
	if f.flags.Changed("shared-token") && f.cloud != "openstack" {
		return "--shared-token: only --cloud openstack uses it: leave it out, or give both"
	}
	return ""
}

// reserve takes the settings without a flag from the agent's own configuration, so that
// the kubelets reserve the amounts that the agent computes with. differs names the flags
// with another value.
func (f *Flags) reserve() (differs []string, err error) {
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

// Render is the user data that the flags ask for. differs are warnings.
func (f *Flags) Render(c *cobra.Command) (script []byte, differs []string, err error) {
	if f.from != "" {
		script, err = f.again(c)
		return script, nil, err
	}
	if differs, err = f.reserve(); err == nil {
		script, err = f.render(c.Context())
	}
	return script, differs, err
}

func (f *Flags) render(ctx context.Context) ([]byte, error) {
	perServer := userdata.TokenPerServer(f.cloud) && !f.sharedToken
	join, err := joinfile.Read(f.joinFile, f.attest == "" && !perServer)
	if err != nil {
		return nil, err
	}
	if f.serverVersion, err = f.server.Version(ctx, join["JOIN_KUBERNETES_VERSION"]); err != nil {
		return nil, err
	}
	if f.Version != "" {
		join["JOIN_KUBERNETES_VERSION"] = f.Version
	}
	if f.Endpoint != "" {
		join["JOIN_ENDPOINT"] = f.Endpoint
	}
	if err := f.ReadFiles(); err != nil {
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

// Typed tells whether a flag is at fault: not the join file, nor a file that cannot be read.
func (f *Flags) Typed(err error) bool {
	published := map[string]string{"join.token": "", "join.caCertHashes": "", "join.endpoint": "endpoint", "kubernetesVersion": "kubernetes-version"}
	return slices.ContainsFunc(config.Flatten(err), func(e error) bool {
		fault, ok := errors.AsType[userdata.Fault](e)
		flag, inFile := published[fault.Field]
		return ok && (!inFile || flag != "" && f.flags.Changed(flag))
	})
}

// flagOf are the flags whose names are not the last word of the field of a specification that they fill.
var flagOf = map[string]string{
	"system": "os", "labels": "label", "taints": "taint", "clusterDNS": "cluster-dns", "certSANs": "cert-san", "ignorePreflight": "ignore-preflight-errors",
	"reservation.kube": "kube-reserved", "reservation.system": "system-reserved", "reservation.eviction": "eviction-hard", "reservation.evictionStoragePercent": "eviction-hard",
	"downloads.mirrors": "mirror", "downloads.ecr": "ecr-credential-provider", "downloads.sha256": "checksum", "registryMirrors": "registry-mirror", "proxy.http": "http-proxy", "proxy.https": "https-proxy", "proxy.no": "no-proxy",
	"kubeVIPInterface": "kube-vip", "kubeVIPDigest": "kube-vip-digest",
}

var upper = regexp.MustCompile(`[A-Z]+`)

// Named says of each fault of a specification which flag it is of, where flags has that flag.
func Named(flags *pflag.FlagSet, err error) error {
	list := config.Flatten(err)
	for i, e := range list {
		fault, ok := errors.AsType[userdata.Fault](e)
		if !ok {
			continue
		}
		field, _, _ := strings.Cut(fault.Field, "[")
		name := flagOf[field]
		if name == "" {
			name = strings.ToLower(upper.ReplaceAllString(field[strings.LastIndexByte(field, '.')+1:], "-$0"))
		}
		if flags.Lookup(name) != nil {
			list[i] = fmt.Errorf("--%s: %s", name, fault.Text)
		}
	}
	return errors.Join(list...)
}

// spec is what the flags ask for. f.ReadFiles comes first.
func (f *Flags) spec(join map[string]string, token string) userdata.Spec {
	return userdata.Spec{
		Cloud: f.cloud, System: f.System, Arch: f.Arch, Format: f.format,
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
		NodeIP:                f.NodeIP,
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

// Leader is the part of a leader's specification that a worker has, too. f.ReadFiles comes first.
func (f *Flags) Leader() userdata.Spec {
	return userdata.Spec{
		System: f.System, Arch: f.Arch, NodeIP: f.NodeIP, KubernetesVersion: f.Version, Join: userdata.Join{Endpoint: f.Endpoint},
		Downloads: f.downloads, Proxy: f.proxy, RegistryMirrors: f.registryMirrors, BeforeJoin: f.hooks[0], AfterJoin: f.hooks[1],
	}
}

// ReadFiles reads what flags name by file.
func (f *Flags) ReadFiles() error {
	f.downloads.Mirrors, f.downloads.SHA256, f.proxy.No = flagvalue.List(f.mirrors), f.checksums, flagvalue.List(f.noProxy)
	for i, file := range []string{f.BeforeJoin, f.AfterJoin} {
		if file == "" {
			continue
		}
		text, err := textfile.Read(file, mostText)
		if err != nil {
			return fmt.Errorf("read a hook: %w", err)
		}
		if len(bytes.TrimSpace(text)) == 0 {
			return fmt.Errorf("read a hook: %s is empty: write a script into it, or leave the flag out", file)
		}
		if err := syntax(file, text); err != nil {
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

// mostText is more than any text of user data has.
const mostText = 16 << 20

// ReadInput reads a file, or standard input for a dash.
func ReadInput(c *cobra.Command, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(c.InOrStdin())
	}
	return textfile.Read(file, mostText)
}

// Downloads are the files that machines may fetch.
func (f *Flags) Downloads() ([]userdata.Download, error) {
	// The list depends on no cluster: these join values go nowhere.
	f.reserved = userdata.DefaultReservation()
	return userdata.DownloadsOf(f.spec(map[string]string{
		"JOIN_KUBERNETES_VERSION": f.Version, "JOIN_ENDPOINT": "cluster:6443", "JOIN_CERT_HASH": "sha256:" + strings.Repeat("0", 64),
	}, "abcdef.0123456789abcdef"))
}
