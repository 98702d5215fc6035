package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// entry is one file of the staged tree.
type entry struct {
	from string // relative to the checkout, unless absolute
	to   string
	mode fs.FileMode
}

const share = "usr/share/autoscaler-agent/"

// lay makes the tree that every artifact of an architecture holds.
func (b *build) lay(stage, arch string) error {
	list := []entry{
		{"packaging/sysusers.conf", "usr/lib/sysusers.d/autoscaler-agent.conf", 0o644},
		{"packaging/tmpfiles.conf", "usr/lib/tmpfiles.d/autoscaler-agent.conf", 0o644},
		{"units/agent.env.example", "etc/autoscaler-agent/agent.env", 0o640},
		{"units/agent.env.example", share + "agent.env.example", 0o644},
		{"units/groups.yaml.example", share + "groups.yaml.example", 0o644},
		{"units/admission-policy.yaml", share + "admission-policy.yaml", 0o644},
		{"units/rbac.yaml", share + "rbac.yaml", 0o644},
		{"units/rbac-open-join.yaml", share + "rbac-open-join.yaml", 0o644},
		{"units/rbac-clusterapi.yaml", share + "rbac-clusterapi.yaml", 0o644},
		{"units/rbac-capacity.yaml", share + "rbac-capacity.yaml", 0o644},
		{"LICENSE", "usr/share/doc/autoscaler-agent/copyright", 0o644},
		{"agent/page/uplot/LICENSE", "usr/share/doc/autoscaler-agent/copyright.uPlot", 0o644},
		{"README.md", "usr/share/doc/autoscaler-agent/README.md", 0o644},
		{"CHANGELOG.md", "usr/share/doc/autoscaler-agent/CHANGELOG.md", 0o644},
	}
	patterns, err := b.matching()
	if err != nil {
		return err
	}
	list = append(list, patterns...)
	catalog := "packaging/autoscaler-agent.catalog"
	if _, err := os.Stat(filepath.Join(b.root, catalog)); err == nil {
		list = append(list, entry{catalog, "usr/lib/systemd/catalog/autoscaler-agent.catalog", 0o644})
	}
	binary, err := filepath.Abs(filepath.Join(b.out, "autoscaler-agent-linux-"+arch))
	if err != nil {
		return err
	}
	list = append(list, entry{binary, "usr/bin/autoscaler-agent", 0o755})
	for _, e := range list {
		from := e.from
		if !filepath.IsAbs(from) {
			from = filepath.Join(b.root, from)
		}
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := b.put(stage, e.to, data, e.mode); err != nil {
			return err
		}
	}
	if err := b.unit(stage); err != nil {
		return err
	}
	if err := b.completions(stage); err != nil {
		return err
	}
	if err := b.manual(stage); err != nil {
		return err
	}
	return b.stamp(stage)
}

// kept are the files of the checkout that stand in the packages under the same path, so that a
// script finds its neighbours. They are named by patterns: what Terraform leaves beside its
// modules, such as a state with secrets, matches none.
var kept = []struct {
	pattern, below string
	mode           fs.FileMode
}{
	{"deploy/cli/*.sh", share, 0o755},
	{"deploy/*.yaml", share, 0o644},
	{"deploy/grafana/*.json", share, 0o644},
	{"deploy/prometheus/*.yaml", share, 0o644},
	{"deploy/terraform/*/*.tf", share, 0o644},
	{"deploy/terraform/*/*.json.tftpl", share, 0o644},
	{"deploy/terraform/*/access-rules.json", share, 0o644},
	{"examples/*/*.yaml", share, 0o644},
	{"examples/*/*.yml", share, 0o644},
	{"examples/*/*.tf", share, 0o644},
	{"docs/*.md", "usr/share/doc/autoscaler-agent/", 0o644},
	{"docs/groups.schema.json", "usr/share/doc/autoscaler-agent/", 0o644},
	{"docs/providers/*.md", "usr/share/doc/autoscaler-agent/", 0o644},
}

// matching are the files of kept. A pattern without a file is a mistake.
func (b *build) matching() ([]entry, error) {
	var list []entry
	for _, k := range kept {
		files, err := filepath.Glob(filepath.Join(b.root, k.pattern))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("no file matches %s: %w", k.pattern, errors.Join(err, fs.ErrNotExist))
		}
		for _, file := range files {
			path, err := filepath.Rel(b.root, file)
			if err != nil {
				return nil, err
			}
			list = append(list, entry{path, k.below + filepath.ToSlash(path), k.mode})
		}
	}
	return list, nil
}

// unit puts the unit file in with the binary's place in a package. A binary that was
// installed by hand is in /usr/local/bin.
func (b *build) unit(stage string) error {
	const byHand, packaged = "/usr/local/bin/autoscaler-agent", "/usr/bin/autoscaler-agent"
	for _, name := range []string{"autoscaler-agent.service", "autoscaler-agent-renew.service", "autoscaler-agent-renew.timer"} {
		data, err := os.ReadFile(filepath.Join(b.root, "units", name))
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, ".service") && !bytes.Contains(data, []byte("ExecStart="+byHand+" ")) {
			return fmt.Errorf("units/%s has no ExecStart=%s", name, byHand)
		}
		if err := b.put(stage, "usr/lib/systemd/system/"+name, bytes.ReplaceAll(data, []byte(byHand), []byte(packaged)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (b *build) completions(stage string) error {
	for shell, to := range map[string]string{
		"bash": "usr/share/bash-completion/completions/autoscaler-agent",
		"zsh":  "usr/share/zsh/site-functions/_autoscaler-agent",
		"fish": "usr/share/fish/vendor_completions.d/autoscaler-agent.fish",
	} {
		data, err := os.ReadFile(filepath.Join(b.completion, shell))
		if err != nil {
			return err
		}
		if err := b.put(stage, to, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (b *build) manual(stage string) error {
	pages, err := filepath.Glob(filepath.Join(b.man, "*.[58]"))
	if err != nil || len(pages) == 0 {
		return fmt.Errorf("no man pages in %s: make man writes them", b.man)
	}
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		var packed bytes.Buffer
		z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // no name and no time: equal bytes
		if _, err := z.Write(data); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		if err := b.put(stage, "usr/share/man/man"+page[len(page)-1:]+"/"+filepath.Base(page)+".gz", packed.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// put writes one file of the tree, whatever umask is in force.
func (b *build) put(stage, to string, data []byte, mode fs.FileMode) error {
	path := filepath.Join(stage, to)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, data, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// stamp gives every file and directory the commit's time, and directories their mode.
func (b *build) stamp(stage string) error {
	return filepath.WalkDir(stage, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			mode := fs.FileMode(0o755)
			if strings.HasSuffix(path, "/etc/autoscaler-agent") {
				mode = 0o750
			}
			if err := os.Chmod(path, mode); err != nil {
				return err
			}
		}
		return os.Chtimes(path, time.Time{}, b.date)
	})
}
