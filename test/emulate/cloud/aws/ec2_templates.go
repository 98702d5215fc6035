package aws

import (
	"encoding/base64"
	"slices"
	"strconv"
)

// launchTemplate finds the template that a call names.
func (r *request) launchTemplate() (*template, *apiError) {
	id, name := r.p.str("LaunchTemplateId"), r.p.str("LaunchTemplateName")
	if id != "" && name != "" {
		return nil, fail("InvalidParameterCombination", "Either launchTemplateId or launchTemplateName can be specified, but not both.")
	}
	if id == "" && name == "" {
		return nil, fail("MissingParameter", "Either launchTemplateId or launchTemplateName must be specified.")
	}
	if t := r.world.template(id, name); t != nil {
		return t, nil
	}
	if id != "" {
		return nil, fail("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID "+id+", does not exist.")
	}
	return nil, fail("InvalidLaunchTemplateName.NotFoundException", "The specified launch template, with template name "+name+", does not exist.")
}

func (c *Cloud) describeTemplates(r *request) ([]el, *apiError) {
	ids, names := r.p.strs("LaunchTemplateId"), r.p.strs("LaunchTemplateName")
	for _, id := range ids {
		if r.world.templates[id] == nil {
			return nil, fail("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID "+id+", does not exist.")
		}
	}
	for _, n := range names {
		if r.world.template("", n) == nil {
			return nil, fail("InvalidLaunchTemplateName.NotFoundException", "At least one of the launch templates specified in the request does not exist.")
		}
	}
	var found []*template
	for _, id := range sortedKeys(r.world.templates) {
		t := r.world.templates[id]
		keep := (len(ids) == 0 || slices.Contains(ids, id)) && (len(names) == 0 || slices.Contains(names, t.name))
		for _, f := range filters(r.p, "Filter", "Value") {
			if f.name != "launch-template-name" {
				return nil, badFilter(f.name)
			}
			keep = keep && f.any(t.name)
		}
		if keep {
			found = append(found, t)
		}
	}
	found, next, err := page(c, r, "DescribeLaunchTemplates", found, "MaxResults", 200, 200)
	if err != nil {
		return nil, err
	}
	return []el{
		each("launchTemplates", "item", found, c.templateElements),
		opt("nextToken", next),
	}, nil
}

func (c *Cloud) templateElements(t *template) []el {
	return []el{
		x("launchTemplateId", t.id), x("launchTemplateName", t.name), x("createTime", t.created),
		x("createdBy", "arn:aws:iam::"+c.opts.AccountID+":user/tester"),
		x("defaultVersionNumber", t.def), x("latestVersionNumber", t.latest()),
	}
}

func (c *Cloud) describeVersions(r *request) ([]el, *apiError) {
	wanted := r.p.strs("LaunchTemplateVersion")
	var found []*templateVersion
	owner := map[*templateVersion]*template{}
	if !r.p.has("LaunchTemplateId") && !r.p.has("LaunchTemplateName") {
		for _, v := range wanted {
			if v != "$Latest" && v != "$Default" {
				return nil, fail("MissingParameter", "When launch template ID or name is not specified, version must be $Latest or $Default.")
			}
		}
		for _, id := range sortedKeys(r.world.templates) {
			for _, w := range wanted {
				v := r.world.templates[id].version(w)
				found = append(found, v)
				owner[v] = r.world.templates[id]
			}
		}
	} else {
		t, err := r.launchTemplate()
		if err != nil {
			return nil, err
		}
		if found, err = t.pick(r, wanted); err != nil {
			return nil, err
		}
		for _, v := range found {
			owner[v] = t
		}
	}
	found, next, err := page(c, r, "DescribeLaunchTemplateVersions", found, "MaxResults", 200, 200)
	if err != nil {
		return nil, err
	}
	return []el{
		each("launchTemplateVersionSet", "item", found, func(v *templateVersion) []el { return c.versionElements(owner[v], v) }),
		opt("nextToken", next),
	}, nil
}

func (t *template) pick(r *request, wanted []string) ([]*templateVersion, *apiError) {
	var found []*templateVersion
	for _, w := range wanted {
		v := t.version(w)
		if v == nil {
			return nil, fail("InvalidLaunchTemplateId.VersionNotFound", "Could not find the specified version "+w+" for the launch template with ID "+t.id+".")
		}
		if !slices.Contains(found, v) {
			found = append(found, v)
		}
	}
	if len(wanted) > 0 {
		return found, nil
	}
	low, err := r.p.number("MinVersion", 1)
	if err != nil {
		return nil, err
	}
	high, err := r.p.number("MaxVersion", len(t.versions))
	if err != nil {
		return nil, err
	}
	for _, v := range slices.Backward(t.versions) {
		if v != nil && v.number >= low && v.number <= high {
			found = append(found, v)
		}
	}
	return found, nil
}

func (c *Cloud) versionElements(t *template, v *templateVersion) []el {
	return []el{
		x("launchTemplateId", t.id), x("launchTemplateName", t.name), x("versionNumber", v.number),
		opt("versionDescription", v.Description), x("createTime", v.created),
		x("createdBy", "arn:aws:iam::"+c.opts.AccountID+":user/tester"), x("defaultVersion", v.number == t.def),
		x("launchTemplateData", v.dataElements()),
	}
}

func (v *templateVersion) dataElements() []el {
	e := []el{opt("imageId", v.ImageID), opt("instanceType", v.InstanceType), opt("keyName", v.KeyName)}
	if v.EBSOptimized {
		e = append(e, x("ebsOptimized", true))
	}
	if v.Monitoring {
		e = append(e, x("monitoring", x("enabled", true)))
	}
	if v.InstanceProfile != "" {
		e = append(e, x("iamInstanceProfile", x("name", v.InstanceProfile)))
	}
	if len(v.BlockDevices) > 0 {
		e = append(e, each("blockDeviceMappingSet", "item", v.BlockDevices, func(d BlockDevice) []el {
			return []el{x("deviceName", d.DeviceName), x("ebs", x("volumeSize", d.SizeGiB), opt("volumeType", d.VolumeType), x("deleteOnTermination", true))}
		}))
	}
	if v.UserData != "" {
		e = append(e, x("userData", base64.StdEncoding.EncodeToString([]byte(v.UserData))))
	}
	if len(v.Tags) > 0 {
		e = append(e, x("tagSpecificationSet", x("item", x("resourceType", "instance"),
			each("tagSet", "item", sortedKeys(v.Tags), func(k string) []el { return []el{x("key", k), x("value", v.Tags[k])} }))))
	}
	if v.PublicIP || v.IPv6 {
		n := x("item", x("deviceIndex", 0), x("associatePublicIpAddress", v.PublicIP), texts("groupSet", "groupId", v.SecurityGroups))
		if v.IPv6 {
			n.add(x("ipv6AddressCount", 1))
		}
		e = append(e, x("networkInterfaceSet", n))
	} else if len(v.SecurityGroups) > 0 {
		e = append(e, texts("securityGroupIdSet", "item", v.SecurityGroups))
	}
	if v.HTTPTokens != "" || v.HopLimit > 0 || v.MetadataTags {
		m := x("metadataOptions", opt("httpTokens", v.HTTPTokens))
		if v.HopLimit > 0 {
			m.add(x("httpPutResponseHopLimit", v.HopLimit))
		}
		if v.MetadataTags {
			m.add(x("instanceMetadataTags", "enabled"))
		}
		e = append(e, m)
	}
	if v.Spot {
		e = append(e, x("instanceMarketOptions", x("marketType", "spot")))
	}
	if v.Requirements != nil {
		e = append(e, v.Requirements.element("instanceRequirements", "item", true))
	}
	return e
}

// readTemplateData reads LaunchTemplateData over what base already says.
func readTemplateData(p *params, base LaunchTemplate) (LaunchTemplate, *apiError) {
	lt := base
	if p == nil {
		return lt, fail("MissingParameter", "The request must contain the parameter LaunchTemplateData")
	}
	for name := range p.kids {
		switch name {
		case "ImageId", "InstanceType", "KeyName", "UserData", "EbsOptimized", "Monitoring", "IamInstanceProfile", "SecurityGroupId",
			"BlockDeviceMapping", "TagSpecification", "NetworkInterface", "MetadataOptions", "InstanceRequirements":
		default:
			return lt, fail("UnsupportedOperation", "This emulated AWS does not emulate the parameter LaunchTemplateData."+name+".")
		}
	}
	for name, to := range map[string]*string{
		"ImageId": &lt.ImageID, "InstanceType": &lt.InstanceType, "KeyName": &lt.KeyName,
		"IamInstanceProfile.Name": &lt.InstanceProfile, "MetadataOptions.HttpTokens": &lt.HTTPTokens,
	} {
		if s := p.str(name); s != "" {
			*to = s
		}
	}
	if s := p.str("UserData"); s != "" {
		raw, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			return lt, fail("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
		}
		lt.UserData = string(raw)
	}
	if q := p.at("InstanceRequirements"); q != nil {
		var err *apiError
		if lt.Requirements, err = readRequirements(q, "CpuManufacturer", "AllowedInstanceType", "ExcludedInstanceType"); err != nil {
			return lt, err
		}
	}
	return lt, readTemplateLists(p, &lt)
}

func readTemplateLists(p *params, lt *LaunchTemplate) *apiError {
	var err *apiError
	if p.has("EbsOptimized") {
		lt.EBSOptimized = p.boolean("EbsOptimized")
	}
	if p.has("Monitoring.Enabled") {
		lt.Monitoring = p.boolean("Monitoring.Enabled")
	}
	if lt.HopLimit, err = p.number("MetadataOptions.HttpPutResponseHopLimit", lt.HopLimit); err != nil {
		return err
	}
	if p.has("MetadataOptions.InstanceMetadataTags") {
		lt.MetadataTags = p.str("MetadataOptions.InstanceMetadataTags") == "enabled"
	}
	if g := p.strs("SecurityGroupId"); len(g) > 0 {
		lt.SecurityGroups = g
	}
	if list := p.list("BlockDeviceMapping"); len(list) > 0 {
		lt.BlockDevices = nil
		for _, d := range list {
			size, err := d.number("Ebs.VolumeSize", 0)
			if err != nil {
				return err
			}
			lt.BlockDevices = append(lt.BlockDevices, BlockDevice{d.str("DeviceName"), size, d.str("Ebs.VolumeType")})
		}
	}
	for _, t := range p.list("TagSpecification") {
		if t.str("ResourceType") != "instance" {
			continue
		}
		lt.Tags = map[string]string{}
		for _, tag := range t.list("Tag") {
			lt.Tags[tag.str("Key")] = tag.str("Value")
		}
	}
	for _, n := range p.list("NetworkInterface") {
		lt.PublicIP = n.boolean("AssociatePublicIpAddress")
		lt.IPv6 = n.str("Ipv6AddressCount") != "" && n.str("Ipv6AddressCount") != "0"
		if g := n.strs("SecurityGroupId"); len(g) > 0 {
			lt.SecurityGroups = g
		}
	}
	return nil
}

func (c *Cloud) createTemplate(r *request) ([]el, *apiError) {
	name := r.p.str("LaunchTemplateName")
	if name == "" {
		return nil, fail("MissingParameter", "The request must contain the parameter LaunchTemplateName")
	}
	if r.world.template("", name) != nil {
		return nil, fail("InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use.")
	}
	lt, err := readTemplateData(r.p.at("LaunchTemplateData"), LaunchTemplate{Description: r.p.str("VersionDescription")})
	if err != nil {
		return nil, err
	}
	t := c.newTemplate(name)
	t.add(lt)
	return []el{x("launchTemplate", c.templateElements(t))}, nil
}

func (c *Cloud) createVersion(r *request) ([]el, *apiError) {
	t, err := r.launchTemplate()
	if err != nil {
		return nil, err
	}
	token := r.p.str("ClientToken")
	for _, v := range t.versions {
		if v != nil && token != "" && v.token == token {
			return []el{x("launchTemplateVersion", c.versionElements(t, v))}, nil
		}
	}
	base := LaunchTemplate{}
	if s := r.p.str("SourceVersion"); s != "" {
		v := t.version(s)
		if v == nil {
			return nil, fail("InvalidLaunchTemplateId.VersionNotFound", "Could not find the specified version "+s+" for the launch template with ID "+t.id+".")
		}
		base = v.LaunchTemplate
	}
	base.Description = r.p.str("VersionDescription")
	lt, err := readTemplateData(r.p.at("LaunchTemplateData"), base)
	if err != nil {
		return nil, err
	}
	v := t.add(lt)
	v.token = token
	return []el{x("launchTemplateVersion", c.versionElements(t, v))}, nil
}

// deleteVersions deletes those that it can, and names the others.
func (c *Cloud) deleteVersions(r *request) ([]el, *apiError) {
	t, err := r.launchTemplate()
	if err != nil {
		return nil, err
	}
	wanted := r.p.strs("LaunchTemplateVersion")
	if len(wanted) == 0 || len(wanted) > 200 {
		return nil, fail("InvalidParameterValue", "Between 1 and 200 launch template versions must be specified.")
	}
	type failed struct{ version, code, message string }
	var gone []int
	var kept []failed
	for _, w := range wanted {
		n, err := strconv.Atoi(w)
		switch {
		case err != nil || t.version(w) == nil:
			kept = append(kept, failed{w, "launchTemplateVersionDoesNotExist", "The specified launch template version does not exist."})
		case n == t.def:
			kept = append(kept, failed{w, "unexpectedError", "The default version of a launch template cannot be deleted."})
		default:
			t.versions[n-1] = nil
			gone = append(gone, n)
		}
	}
	item := func(version any) []el {
		return []el{x("launchTemplateId", t.id), x("launchTemplateName", t.name), x("versionNumber", version)}
	}
	return []el{
		each("successfullyDeletedLaunchTemplateVersionSet", "item", gone, func(n int) []el { return item(n) }),
		each("unsuccessfullyDeletedLaunchTemplateVersionSet", "item", kept, func(f failed) []el {
			return append(item(f.version), x("responseError", x("code", f.code), x("message", f.message)))
		}),
	}, nil
}
