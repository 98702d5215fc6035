package script

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane"
)

// containerds are the versions that pull, by module: one of each minor from 1.7 on.
var containerds = [][2]string{
	{"github.com/containerd/containerd/v2", "v2.3.4"}, {"github.com/containerd/containerd/v2", "v2.0.7"}, {"github.com/containerd/containerd/v2", "v2.2.2"},
	{"github.com/containerd/containerd", "v1.7.29"}, {"github.com/containerd/containerd/v2", "v2.1.5"},
}

// program builds a program of a Go module once, into the cache.
func program(t *testing.T, module, version, path string) string {
	t.Helper()
	cache, err := controlplane.CacheDir("containerd")
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(cache, filepath.Base(path)+"-"+version)
	if _, err := os.Stat(to); err == nil {
		return to
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module built\n\ngo 1.24\n\nrequire " + module + " " + version + "\n", "tools.go": "//go:build tools\n\npackage built\n\nimport _ \"" + path + "\"\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"mod", "tidy"}, {"build", "-trimpath", "-ldflags", "-s -w -X " + module + "/version.Version=" + version, "-o", to, path}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=mod")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s of %s %s: %v\n%s", args[0], path, version, err, out)
		}
	}
	return to
}

// registry is a mirror with one image, a layer with one file, under every name. asked has the paths.
func registry(t *testing.T) (url string, asked func() string) {
	t.Helper()
	var layer, plain bytes.Buffer
	w := tar.NewWriter(&plain)
	if err := w.WriteHeader(&tar.Header{Name: "file", Mode: 0o644, Size: 1}); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(w, "x")
	w.Close()
	z := gzip.NewWriter(&layer)
	_, _ = z.Write(plain.Bytes())
	z.Close()
	encode := func(v any) []byte {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	type object = map[string]any
	config := encode(object{"architecture": "amd64", "os": "linux", "config": object{}, "rootfs": object{"type": "layers", "diff_ids": []string{"sha256:" + sum(plain.Bytes())}}})
	const kind = "application/vnd.oci.image."
	manifest := encode(object{"schemaVersion": 2, "mediaType": kind + "manifest.v1+json",
		"config": object{"mediaType": kind + "config.v1+json", "digest": "sha256:" + sum(config), "size": len(config)},
		"layers": []object{{"mediaType": kind + "layer.v1.tar+gzip", "digest": "sha256:" + sum(layer.Bytes()), "size": layer.Len()}}})
	asks := make(chan string, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asks <- r.URL.String():
		default:
		}
		data := manifest
		for _, blob := range [][]byte{config, layer.Bytes()} {
			if strings.HasSuffix(r.URL.Path, sum(blob)) {
				data = blob
			}
		}
		if bytes.Equal(data, manifest) {
			w.Header().Set("Content-Type", kind+"manifest.v1+json")
		}
		w.Header().Set("Docker-Content-Digest", "sha256:"+sum(data))
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() string {
		close(asks)
		var b strings.Builder
		for a := range asks {
			b.WriteString(a + "\n")
		}
		return b.String()
	}
}

// pull starts containerd as its unit does and has it pull by the CRI: for a registry that is nowhere but at the mirror.
const pull = `#!/bin/sh
set -eu
mkdir -p /run/c
mount -t tmpfs containerd /run/c
containerd --root /run/c/root --state /run/c/state --address /run/c/sock >/srv/containerd.log 2>&1 &
trap 'kill $!; wait $!; umount -l /run/c' EXIT
tries=150
until crictl -r unix:///run/c/sock version; do
  tries=$((tries - 1))
  [ $tries -gt 0 ]
  sleep 0.2
done
crictl -r unix:///run/c/sock pull registry.invalid/kubernetes/thing:v1
crictl -r unix:///run/c/sock info | grep -iE 'systemdCgroup"|maxContainerLog(Line)?Size' >/srv/info
containerd config dump | grep sandbox >>/srv/info
`

// TestRegistryMirror: a real containerd of each minor reads what the script configures, also beside a configuration
// that the image brings, whose other settings stay; and it pulls through the mirror.
func TestRegistryMirror(t *testing.T) {
	if os.Getenv("AUTOSCALER_TEST_WORKER") == "" {
		t.Skip("builds five versions of containerd once: make e2e-worker")
	}
	crictl := program(t, "sigs.k8s.io/cri-tools", "v1.36.0", "sigs.k8s.io/cri-tools/cmd/crictl")
	for _, c := range containerds {
		built := program(t, c[0], c[1], c[0]+"/cmd/containerd")
		defaults, err := exec.Command(built, "config", "default").Output()
		if err != nil {
			t.Fatal(err)
		}
		const limit = "max_container_log_line_size = "
		for name, before := range map[string]string{
			"none":     "",
			"CRI off":  "disabled_plugins = [ 'cri' ]\n",
			"defaults": strings.Replace(string(defaults), limit+"16384", limit+"777", 1),
			"own": "version = 2\n[plugins.'io.containerd.grpc.v1.cri']\n" + limit + "777\nsandbox_image = 'example.net/pause:1'\n[plugins.'io.containerd.grpc.v1.cri'.registry]\n" +
				"config_path = \"\"\n[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc]\nruntime_type = 'io.containerd.runc.v2'\n",
		} {
			t.Run(c[1]+" "+name, func(t *testing.T) {
				p := newPlay(t)
				for _, link := range [][2]string{{built, "containerd"}, {crictl, "crictl"}} {
					data, err := os.ReadFile(link[0])
					if err != nil {
						t.Fatal(err)
					}
					p.put("bin/"+link[1], string(data))
				}
				if before != "" {
					p.put("etc/containerd/config.toml", before)
				}
				url, asked := registry(t)
				p.spec.RegistryMirrors, p.spec.ImageRepository = map[string]string{"registry.invalid": url}, "reg.example.net/k8s"
				p.spec.AfterJoin = []byte(pull)
				out, err := p.run()
				if err != nil {
					log, _ := os.ReadFile(filepath.Join(p.dir, "containerd.log"))
					conf, _ := os.ReadFile(filepath.Join(p.dir, "etc/containerd/config.toml"))
					t.Fatalf("%v\n%s\n%s\n%s", err, out, conf, log)
				}
				if strings.Contains(out, "phase=warning") {
					t.Errorf("it warns\n%s", out)
				}
				if paths := asked(); !strings.Contains(paths, "/v2/kubernetes/thing/manifests/v1?ns=registry.invalid") || !strings.Contains(paths, "/blobs/") {
					t.Errorf("the mirror was asked for\n%s", paths)
				}
				info, err := os.ReadFile(filepath.Join(p.dir, "info"))
				if err != nil {
					t.Fatal(err)
				}
				want := map[string]bool{`"systemdCgroup": true`: name == "none" || name == "CRI off", `": 777`: name == "defaults" || name == "own"}
				for text, yes := range want {
					if strings.Contains(strings.ToLower(string(info)), strings.ToLower(text)) != yes {
						t.Errorf("%s is not %t in\n%s", text, yes, info)
					}
				}
				if !strings.Contains(string(info), "reg.example.net/k8s/pause:3.10.1") {
					t.Errorf("another sandbox image in\n%s", info)
				}
			})
		}
	}
}
