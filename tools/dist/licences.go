package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// licence is what the linked packages of one module say of their use.
type licence struct {
	module, version string
	texts           []licenceText
	concluded       string // an SPDX expression of all texts
	copyright       string
}

// licenceText is one file: a licence, or a notice that has to go with every copy.
type licenceText struct {
	name string // within the module
	data []byte
	ids  []string // SPDX identifiers; none for a notice
}

// command says what the binaries are built from: go list's directory and its arguments.
type command struct {
	dir  string
	args []string
}

var (
	licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-_.][a-z0-9.-]*)?$`)
	noticeFile  = regexp.MustCompile(`(?i)^(notice|patents)`)
	copyright   = regexp.MustCompile(`(?mi)^\W*(copyright (?:\(c\)|©|[0-9]).*?)\s*$`)
)

// identified is the least share of a licence's text, in percent, that known licences must account for. A person reads a text
// with a smaller share. The texts of all modules of November 2026 reach 90 percent.
const identified = 75

// licences are those of every module that is linked into a binary, the Go standard library first. A module without a text, or one whose
// text is not identified, is an error: nobody may pass it on.
func (b *build) licences(arch string) ([]licence, error) {
	dirs, err := b.linked(arch)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(filepath.Join(b.out, "autoscaler-agent-linux-"+arch))
	if err != nil {
		return nil, err
	}
	list := []licence{{module: "std", version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		list = append(list, licence{module: d.Path, version: d.Version})
	}
	for i := range list {
		if dirs[list[i].module] == nil {
			return nil, fmt.Errorf("the binary has %s, and go list does not: it was built from something else", list[i].module)
		}
		if err := list[i].read(dirs[list[i].module]); err != nil {
			return nil, fmt.Errorf("%s %s: %w", list[i].module, list[i].version, err)
		}
	}
	return list, nil
}

// linked are the directories of the packages of each module that the command is built from: the module's own first.
func (b *build) linked(arch string) (map[string][]string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	args := append([]string{"list", "-deps", "-f", `{{if .Module}}{{if not .Module.Main}}{{.Module.Path}}	{{.Module.Dir}}	{{.Dir}}{{end}}{{end}}`}, b.from.args...)
	cmd := exec.Command("go", args...)
	cmd.Dir = b.from.dir
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, problem.String())
	}
	dirs := map[string][]string{"std": {strings.TrimSpace(string(root))}}
	for line := range strings.SplitSeq(string(out), "\n") {
		module, rest, ok := strings.Cut(line, "\t")
		if !ok {
			continue
		}
		own, dir, _ := strings.Cut(rest, "\t")
		if dirs[module] == nil {
			dirs[module] = []string{own}
		}
		dirs[module] = append(dirs[module], dir)
	}
	return dirs, nil
}

// read takes the texts beside the linked packages and above them, up to the module's directory.
func (l *licence) read(dirs []string) error {
	root, seen := dirs[0], map[string]bool{}
	for _, dir := range dirs {
		for ; !seen[dir] && (dir == root || strings.HasPrefix(dir, root+string(filepath.Separator))); dir = filepath.Dir(dir) {
			seen[dir] = true
			if err := l.readDir(root, dir); err != nil {
				return err
			}
		}
	}
	slices.SortFunc(l.texts, func(x, y licenceText) int { return strings.Compare(x.name, y.name) })
	var ids, owners []string
	for _, t := range l.texts {
		ids = append(ids, t.ids...)
		for _, m := range copyright.FindAllSubmatch(t.data, -1) {
			if owner := string(m[1]); !strings.Contains(owner, "{") && !strings.Contains(owner, "[") { // the form of Apache's appendix
				owners = append(owners, owner)
			}
		}
	}
	slices.Sort(ids)
	slices.Sort(owners)
	if len(ids) == 0 {
		return fmt.Errorf("there is no licence in %s", root)
	}
	l.concluded, l.copyright = strings.Join(slices.Compact(ids), " AND "), "NOASSERTION"
	if len(owners) > 0 {
		l.copyright = strings.Join(slices.Compact(owners), "\n")
	}
	return nil
}

func (l *licence) readDir(root, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !licenceFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		t := licenceText{name: filepath.ToSlash(name), data: data}
		if !noticeFile.MatchString(e.Name()) {
			if t.ids, err = identify(data); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		l.texts = append(l.texts, t)
	}
	return nil
}

// identify names the licences of a text.
func identify(data []byte) ([]string, error) {
	found := licensecheck.Scan(data)
	var ids []string
	for _, m := range found.Match {
		if !m.IsURL && !slices.Contains(ids, m.ID) {
			ids = append(ids, m.ID)
		}
	}
	if len(ids) == 0 || found.Percent < identified {
		return nil, fmt.Errorf("its text is that of %v to %.0f percent: read it and teach identify what it is", ids, found.Percent)
	}
	return ids, nil
}

// notices is the file that goes with every package: each text once, below the modules that have it.
func notices(list []licence) []byte {
	type shared struct {
		data  []byte
		users []string
	}
	var all []*shared
	byText := map[string]*shared{}
	for _, l := range list {
		for _, t := range l.texts {
			key := string(bytes.TrimSpace(t.data))
			s := byText[key]
			if s == nil {
				s = &shared{data: bytes.TrimSpace(t.data)}
				byText[key] = s
				all = append(all, s)
			}
			s.users = append(s.users, fmt.Sprintf("%s %s: %s (%s)", l.module, l.version, t.name, l.concluded))
		}
	}
	var out bytes.Buffer
	out.WriteString("The binary autoscaler-agent has parts of these Go modules. Below the names of the modules stands the text\nof a licence or notice that they come with.\n")
	for _, s := range all {
		out.WriteString("\n" + strings.Repeat("=", 80) + "\n" + strings.Join(s.users, "\n") + "\n" + strings.Repeat("-", 80) + "\n\n")
		out.Write(s.data)
		out.WriteString("\n")
	}
	return out.Bytes()
}
