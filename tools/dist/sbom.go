package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"
)

// modules writes the software bill of materials (SPDX 2.3) of one binary: the modules
// that the linker wrote into it, not those that go.mod names, each with the licences of its linked packages.
func (b *build) modules(arch string, licences []licence) error {
	binary := filepath.Join(b.out, "autoscaler-agent-linux-"+arch)
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	sum, err := digest(binary)
	if err != nil {
		return err
	}
	agent := module("agent", info.Main.Path, b.version)
	agent.PackageLicenseDeclared, agent.PackageLicenseConcluded = "Apache-2.0", "Apache-2.0"
	agent.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: sum}}
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName:      "autoscaler-agent-" + b.version + "-linux-" + arch,
		DocumentNamespace: "https://github.com/autoscaler-agent/autoscaler-agent/sbom/" + sum,
		CreationInfo:      &spdx.CreationInfo{Creators: []common.Creator{{CreatorType: "Tool", Creator: "autoscaler-agent-dist"}}, Created: b.date.Format(time.RFC3339)},
		Packages:          []*spdx.Package{agent},
		Relationships:     []*spdx.Relationship{relation("DOCUMENT", "DESCRIBES", "agent")},
	}
	packages := []*spdx.Package{charts()}
	for i, l := range licences {
		p := module(fmt.Sprintf("module-%d", i), l.module, l.version)
		p.PackageLicenseConcluded, p.PackageLicenseDeclared, p.PackageCopyrightText = l.concluded, l.concluded, l.copyright
		packages = append(packages, p)
	}
	for _, p := range packages {
		doc.Packages = append(doc.Packages, p)
		doc.Relationships = append(doc.Relationships, relation("agent", "CONTAINS", common.ElementID(p.PackageSPDXIdentifier)))
	}
	f, err := os.Create(b.name(arch, ".spdx.json"))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := json.Write(doc, f, json.Indent("  ")); err != nil {
		return fmt.Errorf("SPDX: %w", err)
	}
	return f.Close()
}

// charts is the library that the page holds (agent/page/uplot): no module, so the binary does not name it.
func charts() *spdx.Package {
	p := module("uplot", "uplot", "1.6.32")
	p.PackageLicenseDeclared, p.PackageLicenseConcluded = "MIT", "MIT"
	p.PackageExternalReferences[0].Locator = "pkg:npm/uplot@1.6.32"
	return p
}

func module(id, path, version string) *spdx.Package {
	return &spdx.Package{
		PackageSPDXIdentifier: common.ElementID(id), PackageName: path, PackageVersion: version,
		PackageDownloadLocation: "NOASSERTION", PackageLicenseConcluded: "NOASSERTION",
		PackageLicenseDeclared: "NOASSERTION", PackageCopyrightText: "NOASSERTION",
		PackageExternalReferences: []*spdx.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
			Locator: "pkg:golang/" + path + "@" + version,
		}},
	}
}

func relation(from common.ElementID, kind string, to common.ElementID) *spdx.Relationship {
	return &spdx.Relationship{RefA: common.DocElementID{ElementRefID: from}, Relationship: kind, RefB: common.DocElementID{ElementRefID: to}}
}
