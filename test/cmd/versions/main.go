// Command versions renews userdata/versions.txt: it adds versions with the checksums that
// their publishers put beside the files, and compares those that the table has from
// somewhere else. It needs the internet, and invents nothing: a checksum that cannot be read
// leaves the table as it was, with an error that names the address.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

func main() {
	table := flag.String("table", "", "the `file` to renew")
	base := flag.String("base", "https://", "the `address` before the publishers' own, for a mirror of their sites")
	flag.Parse()
	if err := run(context.Background(), *table, *base, flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "versions: %v\n", err)
		os.Exit(1)
	}
}

// beside is what a publisher adds to a file's address for its checksum.
var beside = map[string]string{
	"kubelet": ".sha256", "kubeadm": ".sha256", "kubectl": ".sha256", "containerd": ".sha256sum", "cni": ".sha256", "crictl": ".sha256",
	"runc": "", // all in one file, runc.sha256sum
}

// run adds NAME=VERSION of args and turns each line of the table that no publisher vouches
// for into one that does.
func run(ctx context.Context, file, base string, args []string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	pins, err := userdata.ParseTable(string(text))
	if err != nil {
		return err
	}
	for _, arg := range args {
		name, version, ok := strings.Cut(arg, "=")
		if _, known := beside[name]; !ok || !known {
			return fmt.Errorf("%q: give NAME=VERSION with a name of %s", arg, strings.Join(append(slices.Clone(userdata.Files), userdata.LeaderFiles...), ", "))
		}
		for _, arch := range userdata.Arches {
			if pins.Sum(name, version, arch) == "" {
				pins = append(pins, userdata.Pin{Name: name, Version: version, Arch: arch})
			}
		}
	}
	for i := range pins {
		if pins[i].Source == "publisher" {
			continue
		}
		sum, err := published(ctx, base, pins[i])
		if err != nil {
			return err
		}
		if pins[i].SHA256 != "" && pins[i].SHA256 != sum {
			return fmt.Errorf("%s %s %s: the publisher says %s, and the table has %s from %s: find out which is wrong", pins[i].Name, pins[i].Version, pins[i].Arch, sum, pins[i].SHA256, pins[i].Source)
		}
		pins[i].SHA256, pins[i].Source = sum, "publisher"
	}
	return os.WriteFile(file, []byte(format(string(text), pins)), 0o644)
}

// format keeps the head of comments.
func format(old string, pins userdata.Table) string {
	var b strings.Builder
	for line := range strings.Lines(old) {
		if strings.HasPrefix(line, "#") {
			b.WriteString(line)
		}
	}
	for _, p := range pins {
		fmt.Fprintf(&b, "%s %s %s %s %s\n", p.Name, p.Version, p.Arch, p.SHA256, p.Source)
	}
	return b.String()
}

var digest = regexp.MustCompile(`\b[0-9a-f]{64}\b`)

func published(ctx context.Context, base string, p userdata.Pin) (string, error) {
	path := userdata.PublishedPath(p.Name, p.Version, p.Arch)
	address := base + path + beside[p.Name]
	if p.Name == "runc" {
		address = base + path[:strings.LastIndexByte(path, '/')] + "/runc.sha256sum"
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return "", fmt.Errorf("read the checksum of %s %s: %w: run this where the publishers' sites are reached", p.Name, p.Version, err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(io.LimitReader(a.Body, 1<<20))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", address, err)
	}
	if a.StatusCode != http.StatusOK {
		return "", fmt.Errorf("read %s: %s", address, a.Status)
	}
	for line := range strings.Lines(string(body)) {
		if sum := digest.FindString(line); sum != "" && (p.Name != "runc" || strings.HasSuffix(strings.TrimSpace(line), "runc."+p.Arch)) {
			return sum, nil
		}
	}
	return "", errors.New("read " + address + ": no SHA-256 in it")
}
