package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// joinConfig is what the join section's JoinConfiguration says.
type joinConfig struct {
	name      string
	endpoint  string
	token     string
	hashes    []string
	extraArgs map[string]string
	taints    []corev1.Taint
	patches   string // directory
}

// joinFile has the fields of kubeadm's v1beta3 and v1beta4 JoinConfiguration that a
// worker's user data may use; the two differ in kubeletExtraArgs alone. The types
// themselves live in k8s.io/kubernetes, which cannot be imported here; a test gives
// the same file to the real kubeadm.
type joinFile struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Timeouts   struct {
		Discovery string `json:"discovery"`
	} `json:"timeouts"`
	Discovery struct {
		Timeout        string `json:"timeout"`
		BootstrapToken struct {
			APIServerEndpoint string   `json:"apiServerEndpoint"`
			Token             string   `json:"token"`
			CACertHashes      []string `json:"caCertHashes"`
		} `json:"bootstrapToken"`
	} `json:"discovery"`
	NodeRegistration struct {
		Name             string          `json:"name"`
		CRISocket        string          `json:"criSocket"`
		KubeletExtraArgs json.RawMessage `json:"kubeletExtraArgs"`
		Taints           []corev1.Taint  `json:"taints"`
	} `json:"nodeRegistration"`
	Patches struct {
		Directory string `json:"directory"`
	} `json:"patches"`
}

// readJoinConfig reads the file that kubeadm was given. A token in a file that
// others can read is an error here, though kubeadm would not mind.
func readJoinConfig(file string) (joinConfig, error) {
	info, err := os.Stat(file)
	if err != nil {
		return joinConfig{}, fmt.Errorf("read join configuration: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return joinConfig{}, fmt.Errorf("read join configuration: mode %04o lets others read the token, want 0600", mode)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return joinConfig{}, fmt.Errorf("read join configuration: %w", err)
	}
	var f joinFile
	if err := yaml.UnmarshalStrict(text, &f); err != nil {
		return joinConfig{}, fmt.Errorf("parse join configuration: %w", err)
	}
	c := joinConfig{
		name:     f.NodeRegistration.Name,
		endpoint: f.Discovery.BootstrapToken.APIServerEndpoint,
		token:    f.Discovery.BootstrapToken.Token,
		hashes:   f.Discovery.BootstrapToken.CACertHashes,
		taints:   f.NodeRegistration.Taints,
		patches:  f.Patches.Directory,
	}
	if f.Kind != "JoinConfiguration" || c.name == "" || c.endpoint == "" || c.token == "" {
		return joinConfig{}, errors.New("parse join configuration: kind, node name, endpoint or token is missing")
	}
	if c.extraArgs, err = extraArgs(f.APIVersion, f.NodeRegistration.KubeletExtraArgs); err != nil {
		return joinConfig{}, fmt.Errorf("parse join configuration: %w", err)
	}
	return c, nil
}

func extraArgs(apiVersion string, raw json.RawMessage) (map[string]string, error) {
	args := map[string]string{}
	if len(raw) == 0 {
		return args, nil
	}
	switch apiVersion {
	case "kubeadm.k8s.io/v1beta3":
		return args, json.Unmarshal(raw, &args)
	case "kubeadm.k8s.io/v1beta4":
		var list []struct{ Name, Value string }
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
		for _, a := range list {
			args[a.Name] = a.Value
		}
		return args, nil
	}
	return nil, fmt.Errorf("apiVersion %q is not known", apiVersion)
}

// nodeLabels parses the kubelet's --node-labels.
func nodeLabels(arg string) map[string]string {
	out := map[string]string{}
	for pair := range strings.SplitSeq(arg, ",") {
		if key, value, _ := strings.Cut(pair, "="); key != "" {
			out[key] = value
		}
	}
	return out
}

// kubeletConfig applies the patches of the join to the cluster's own kubelet
// configuration, as kubeadm's kubelet-start phase does. Strict decoding into the
// kubelet's types finds a field that does not exist.
func kubeletConfig(cluster string, patches string) (*kubeletv1beta1.KubeletConfiguration, error) {
	merged, err := yaml.YAMLToJSON([]byte(cluster))
	if err != nil {
		return nil, fmt.Errorf("parse kubelet-config: %w", err)
	}
	if patches != "" {
		files, err := filepath.Glob(filepath.Join(patches, "kubeletconfiguration*+merge.yaml"))
		if err != nil {
			return nil, fmt.Errorf("find patches: %w", err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("read patch: %w", err)
			}
			var strict kubeletv1beta1.KubeletConfiguration
			if err := yaml.UnmarshalStrict(text, &strict); err != nil {
				return nil, fmt.Errorf("parse %s: %w", filepath.Base(file), err)
			}
			patch, err := yaml.YAMLToJSON(text)
			if err != nil {
				return nil, fmt.Errorf("parse %s: %w", filepath.Base(file), err)
			}
			if merged, err = jsonpatch.MergePatch(merged, patch); err != nil {
				return nil, fmt.Errorf("apply %s: %w", filepath.Base(file), err)
			}
		}
	}
	config := &kubeletv1beta1.KubeletConfiguration{}
	if err := json.Unmarshal(merged, config); err != nil {
		return nil, fmt.Errorf("read kubelet configuration: %w", err)
	}
	return config, nil
}
