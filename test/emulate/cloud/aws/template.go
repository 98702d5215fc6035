package aws

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// LaunchTemplate is the content of one version of a launch template.
type LaunchTemplate struct {
	Name            string
	Description     string
	InstanceType    string
	ImageID         string // default ami-0 and sixteen more digits, an x86_64 image
	UserData        string // as the instance sees it, not base64
	KeyName         string
	InstanceProfile string // name; the role has the same
	SecurityGroups  []string
	Tags            map[string]string // of the instances
	BlockDevices    []BlockDevice
	// HTTPTokens "optional" lets the metadata service answer IMDSv1; "" and
	// "required" do not, as with images that ask for IMDSv2.
	HTTPTokens   string
	HopLimit     int  // default 1
	MetadataTags bool // tags in the metadata service
	PublicIP     bool
	IPv6         bool
	EBSOptimized bool
	Monitoring   bool
	Spot         bool // InstanceMarketOptions: bought on the spot market
	// Requirements choose instance types by attributes, instead of InstanceType.
	Requirements *Requirements
}

// BlockDevice is one volume of a launch template or an image.
type BlockDevice struct {
	DeviceName string
	SizeGiB    int
	VolumeType string // gp3 and others
}

// template is a launch template with all its versions; version n is at n-1, nil where it was
// deleted.
type template struct {
	id, name string
	created  time.Time
	def      int
	versions []*templateVersion
}

type templateVersion struct {
	LaunchTemplate
	number  int
	created time.Time
	token   string // the ClientToken of the call that made it
}

// defaultImage is what templates of the Go API get that name no image.
const defaultImage = "ami-0123456789abcdef0"

// PutLaunchTemplate creates a template, or adds a version to the one of the
// same name and makes it the default. It returns the template's ID and the
// version's number.
func (c *Cloud) PutLaunchTemplate(lt LaunchTemplate) (id string, version int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.changed()
	if lt.ImageID == "" {
		lt.ImageID = defaultImage
	}
	t := c.world.template("", lt.Name)
	if t == nil {
		t = c.newTemplate(lt.Name)
	}
	v := t.add(lt)
	t.def = v.number
	return t.id, v.number
}

// LatestVersion is the newest version of a launch template.
func (c *Cloud) LatestVersion(name string) (lt LaunchTemplate, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.world.template("", name)
	if t == nil {
		return LaunchTemplate{}, false
	}
	return t.version("$Latest").LaunchTemplate, true
}

// LaunchTemplateID is the ID of a launch template; empty: there is none of that name.
func (c *Cloud) LaunchTemplateID(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.world.template("", name); t != nil {
		return t.id
	}
	return ""
}

func (c *Cloud) newTemplate(name string) *template {
	t := &template{id: "lt-0" + c.hex(16), name: name, created: time.Now(), def: 1}
	c.world.templates[t.id] = t
	return t
}

func (t *template) add(lt LaunchTemplate) *templateVersion {
	lt.Name = t.name
	v := &templateVersion{LaunchTemplate: lt, number: len(t.versions) + 1, created: time.Now()}
	t.versions = append(t.versions, v)
	return v
}

// template finds one by ID or by name, whichever is given.
func (w *world) template(id, name string) *template {
	if id != "" {
		return w.templates[id]
	}
	for _, t := range w.templates {
		if t.name == name {
			return t
		}
	}
	return nil
}

// version resolves "$Default", "$Latest", "" (default) and numbers.
func (t *template) version(v string) *templateVersion {
	n := t.def
	switch v {
	case "", "$Default":
	case "$Latest":
		n = t.latest()
	default:
		var err error
		if n, err = strconv.Atoi(v); err != nil {
			return nil
		}
	}
	if n < 1 || n > len(t.versions) {
		return nil
	}
	return t.versions[n-1]
}

// latest is the newest version that was not deleted: the default one cannot be.
func (t *template) latest() int {
	n := len(t.versions)
	for n > 1 && t.versions[n-1] == nil {
		n--
	}
	return n
}

// templateRef is how a group points at a template.
type templateRef struct {
	id, name, version string
}

func (r templateRef) given() bool { return r.id != "" || r.name != "" }

func (r templateRef) elements() []el {
	return []el{x("LaunchTemplateId", r.id), x("LaunchTemplateName", r.name), x("Version", r.version)}
}

// resolve completes a reference and finds what it points at.
func (w *world) resolve(r templateRef) (templateRef, *templateVersion, *apiError) {
	t := w.template(r.id, r.name)
	if t == nil {
		what, code := r.id, "InvalidLaunchTemplateId.NotFound"
		if what == "" {
			what, code = r.name, "InvalidLaunchTemplateName.NotFoundException"
		}
		return r, nil, fail("ValidationError", fmt.Sprintf("You must use a valid fully-formed launch template. The specified launch template, with template %s, does not exist. (%s)", what, code))
	}
	r.id, r.name = t.id, t.name
	if r.version == "" {
		r.version = "$Default"
	}
	v := t.version(r.version)
	if v == nil {
		return r, nil, fail("ValidationError", fmt.Sprintf("You must use a valid fully-formed launch template. Could not find the specified version %s for the launch template with ID %s.", r.version, t.id))
	}
	return r, v, nil
}

// image is what DescribeImages tells. Every image ID exists, with the
// architecture of the templates' types, unless RemoveImage took it away.
type image struct {
	id, arch string
	disks    []BlockDevice
}

// RemoveImage makes an image not exist, so that launches from templates that
// name it fail as they do on AWS. RestoreImage undoes it.
func (c *Cloud) RemoveImage(id string) { c.setBadImage(id, true) }

// RestoreImage undoes RemoveImage.
func (c *Cloud) RestoreImage(id string) { c.setBadImage(id, false) }

func (c *Cloud) setBadImage(id string, bad bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.badImage[id] = bad
}

// images derives the images that templates mention.
func (c *Cloud) images(w *world) []image {
	byID := map[string]image{}
	for _, id := range sortedKeys(w.templates) {
		for _, v := range w.templates[id].versions {
			if v == nil {
				continue
			}
			arch := "x86_64"
			if t, ok := c.types[v.InstanceType]; ok {
				arch = t.Arch
			}
			if v.ImageID != "" && !c.badImage[v.ImageID] {
				byID[v.ImageID] = image{v.ImageID, arch, []BlockDevice{{"/dev/xvda", 8, "gp3"}}}
			}
		}
	}
	for id, arch := range c.account.images {
		byID[id] = image{id, arch, []BlockDevice{{"/dev/xvda", 8, "gp3"}}}
	}
	var out []image
	for _, id := range sortedKeys(byID) {
		out = append(out, byID[id])
	}
	return out
}

// Requirements choose instance types by attributes. 0 and nil mean any.
type Requirements struct {
	MinVCPU, MaxVCPU           int
	MinMemoryMiB, MaxMemoryMiB int
	Architectures              []string // x86_64, arm64
	Allowed, Excluded          []string // types, with * for the rest
	Burstable                  string   // included, required, excluded (AWS's default)
	MinGPUs, MaxGPUs           int      // MaxGPUs -1 is no limit
}

// choose lists the types that meet the requirements, by name.
func (c *Cloud) choose(r Requirements) []string {
	var out []string
	for _, t := range c.sortedTypes() {
		anyOf := func(globs []string) bool {
			return slices.ContainsFunc(globs, func(g string) bool { return matches(g, t.Name) })
		}
		switch {
		case t.Previous || t.BareMetal:
		case t.VCPU < r.MinVCPU || r.MaxVCPU > 0 && t.VCPU > r.MaxVCPU:
		case t.MemoryMiB < r.MinMemoryMiB || r.MaxMemoryMiB > 0 && t.MemoryMiB > r.MaxMemoryMiB:
		case len(r.Architectures) > 0 && !slices.Contains(r.Architectures, t.Arch):
		case len(r.Allowed) > 0 && !anyOf(r.Allowed) || anyOf(r.Excluded):
		case t.Burstable && r.Burstable != "included" && r.Burstable != "required":
		case !t.Burstable && r.Burstable == "required":
		case t.GPUs < r.MinGPUs || r.MaxGPUs >= 0 && t.GPUs > r.MaxGPUs && (r.MaxGPUs > 0 || r.MinGPUs == 0):
		default:
			out = append(out, t.Name)
		}
	}
	return out
}
