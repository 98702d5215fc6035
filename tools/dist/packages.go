package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// packages makes the deb and the rpm from packaging/nfpm.yaml.
func (b *build) packages(stage, arch string) error {
	values := map[string]string{"ARCH": arch, "VERSION": b.version, "STAGE": stage}
	for _, format := range []string{"deb", "rpm"} {
		config, err := b.config(values)
		if err != nil {
			return err
		}
		info, err := config.Get(format)
		if err != nil {
			return err
		}
		info = nfpm.WithDefaults(info)
		packager, err := nfpm.Get(format)
		if err != nil {
			return err
		}
		info.Target = b.name(arch, "."+format)
		f, err := os.Create(info.Target)
		if err != nil {
			return err
		}
		err = packager.Package(info, f)
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			os.Remove(info.Target)
			return fmt.Errorf("%s: %w", format, err)
		}
	}
	return nil
}

// config reads packaging/nfpm.yaml for one architecture.
func (b *build) config(values map[string]string) (nfpm.Config, error) {
	f, err := os.Open(filepath.Join(b.root, "packaging/nfpm.yaml"))
	if err != nil {
		return nfpm.Config{}, err
	}
	defer f.Close()
	config, err := nfpm.ParseWithEnvMapping(f, func(name string) string { return values[name] })
	if err != nil {
		return config, fmt.Errorf("packaging/nfpm.yaml: %w", err)
	}
	config.MTime = b.date
	for i, c := range config.Contents {
		c.Source = os.Expand(c.Source, func(name string) string { return values[name] })
		if c.FileInfo != nil {
			config.Contents[i].FileInfo.MTime = b.date
		}
	}
	for _, script := range []*string{&config.Scripts.PostInstall, &config.Scripts.PreRemove, &config.Scripts.PostRemove} {
		*script = filepath.Join(b.root, *script)
	}
	return config, nil
}
