package userdata

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Install returns the first part of a script, which makes any machine of a cluster ready for
// kubeadm: functions, settings of the kernel, container runtime, kubelet and the services. It
// reads the fields of s that tell of the machine and its programs, and Join.Endpoint; it
// joins nothing. programs are fetched by the caller's own steps: their checksums are those of
// the tables, and their addresses "$KUBERNETES/NAME". files are checksums of further files by
// NAME, whatever the architecture.
func (s Spec) Install(programs []string, files map[string]string) (string, error) {
	errs := []error{s.JudgeInstall()}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !only(name, "-_.") || !isSHA256(files[name]) {
			errs = append(errs, Faultf("userdata", fmt.Sprintf("files[%q]", name), "%q is not 64 lower-case hex digits", files[name]))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	sums, err := s.sums(append(slices.Clone(Files), programs...))
	if err != nil {
		return "", err
	}
	for name, sum := range files {
		for _, arch := range s.arches() {
			sums[name+"/"+arch] = sum
		}
	}
	return strings.Join([]string{FunctionsBegin + "\n", functionSteps, FunctionsEnd + "\n", "trap stopped EXIT\nphase start\n", s.settings(), s.proxy(), "phase install\n",
		s.architecture(), s.addresses(), checksums(sums), installSteps, s.packages(), s.containerd(), programSteps}, ""), nil
}

// JudgeInstall finds every mistake in the fields that Install reads.
func (s Spec) JudgeInstall() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, Faultf("userdata", field, format, args...))
	}
	n, err := minor(s.KubernetesVersion)
	if err != nil {
		bad("kubernetesVersion", "%v", err)
	}
	if why := badEndpoint(s.Join.Endpoint); why != "" {
		bad("join.endpoint", "%q %s: give host:port of the API server, for example k8s.example.net:6443", s.Join.Endpoint, why)
	}
	s.Downloads.validate(bad, n)
	s.Proxy.validate(bad)
	s.validateMachine(bad)
	return errors.Join(errs...)
}

// Quote returns s as one word of a POSIX shell.
func Quote(s string) string { return shellQuote(s) }

// KubeadmAPI is the version of kubeadm's configuration that fits a version of Kubernetes.
func KubeadmAPI(version string) string { return Spec{KubernetesVersion: version}.apiVersion() }

// BadEndpoint tells what is wrong with host:port; empty: nothing.
func BadEndpoint(s string) string { return badEndpoint(s) }

// BadImageRepository tells what is wrong with a repository of images; empty: nothing.
func BadImageRepository(s string) string {
	if strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789.-_/:") != "" || strings.Contains(s, "://") || strings.HasSuffix(s, "/") || strings.HasPrefix(s, "-") {
		return "give host and path without a scheme, for example registry.example.net/kubernetes"
	}
	return ""
}

// BadHook tells why a script cannot be put into another; empty: it can.
func BadHook(text []byte) string { return badHook(text) }

// Ref stands in a value of HereDocument for a variable of the shell, which holds only characters that
// need no escape in a JSON string.
func Ref(name string) string { return ref(name) }

// HereDocument encodes a value as JSON for an unquoted here-document of the shell.
func HereDocument(v any) string { return hereDocument(v) }
