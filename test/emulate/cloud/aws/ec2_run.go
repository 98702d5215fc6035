package aws

import (
	"encoding/base64"
	"fmt"
	"maps"
	"time"
)

var runParams = []string{
	"DryRun", "ClientToken", "ImageId", "InstanceType", "KeyName", "MinCount", "MaxCount", "UserData",
	"IamInstanceProfile.Name", "NetworkInterface.N.DeviceIndex", "NetworkInterface.N.NetworkInterfaceId",
	"MetadataOptions.HttpTokens", "MetadataOptions.HttpPutResponseHopLimit", "MetadataOptions.HttpEndpoint",
	"BlockDeviceMapping.N.DeviceName", "BlockDeviceMapping.N.Ebs.VolumeSize", "BlockDeviceMapping.N.Ebs.VolumeType",
	"BlockDeviceMapping.N.Ebs.Encrypted", "BlockDeviceMapping.N.Ebs.DeleteOnTermination",
	"TagSpecification.N.ResourceType", "TagSpecification.N.Tag.N.Key", "TagSpecification.N.Tag.N.Value",
}

// runInstances starts one instance beside all groups, with a network interface that was
// made for it: what a person does for a leader.
func (c *Cloud) runInstances(r *request) ([]el, *apiError) {
	if r.p.str("MinCount") != "1" || r.p.str("MaxCount") != "1" {
		return nil, fail("UnsupportedOperation", "This emulated AWS runs one instance at a time.")
	}
	lt, nic, err := c.readLaunch(r)
	if err != nil {
		return nil, err
	}
	version := &templateVersion{LaunchTemplate: lt, number: 1, created: time.Now()}
	i := &instance{
		id: "i-0" + c.hex(16), instanceType: lt.InstanceType, zone: nic.Zone, ip: nic.PrivateIP, eni: nic.ID,
		mac: "0a:" + c.hex(2) + ":" + c.hex(2) + ":" + c.hex(2) + ":" + c.hex(2) + ":" + c.hex(2),
		lt:  version, tags: maps.Clone(lt.Tags), launched: time.Now(), reservation: "r-0" + c.hex(16), healthy: true,
	}
	for _, a := range c.account.addrs {
		if a.Interface == nic.ID {
			i.publicIP = a.PublicIP
		}
	}
	nic.Instance = i.id
	c.world.instances[i.id] = i
	c.setState(i, "pending")
	c.boot(i)
	return []el{x("reservationId", i.reservation), x("ownerId", c.opts.AccountID), x("groupSet"), x("instancesSet", x("item", c.instanceElements(i)))}, nil
}

// readLaunch reads what RunInstances asks for, in the words of a launch template.
func (c *Cloud) readLaunch(r *request) (LaunchTemplate, *NetworkInterface, *apiError) {
	lt := LaunchTemplate{ImageID: r.p.str("ImageId"), InstanceType: r.p.str("InstanceType"), KeyName: r.p.str("KeyName"),
		InstanceProfile: r.p.str("IamInstanceProfile.Name"), HTTPTokens: r.p.str("MetadataOptions.HttpTokens"), Tags: map[string]string{}}
	if _, ok := c.types[lt.InstanceType]; !ok {
		return lt, nil, fail("InvalidParameterValue", "Invalid value '"+lt.InstanceType+"' for InstanceType.")
	}
	if c.account.profiles[lt.InstanceProfile] == nil {
		return lt, nil, fail("InvalidParameterValue", fmt.Sprintf("Value (%s) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name", lt.InstanceProfile))
	}
	if _, ok := c.account.keys[lt.KeyName]; !ok {
		return lt, nil, fail("InvalidKeyPair.NotFound", "The key pair '"+lt.KeyName+"' does not exist")
	}
	raw, err := base64.StdEncoding.DecodeString(r.p.str("UserData"))
	if err != nil {
		return lt, nil, fail("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
	}
	lt.UserData = string(raw)
	for _, s := range r.p.list("TagSpecification") {
		for _, t := range s.list("Tag") {
			if s.str("ResourceType") == "instance" {
				lt.Tags[t.str("Key")] = t.str("Value")
			}
		}
	}
	list := r.p.list("NetworkInterface")
	if len(list) != 1 {
		return lt, nil, fail("UnsupportedOperation", "This emulated AWS runs instances with one network interface that exists.")
	}
	nic := c.account.nics[list[0].str("NetworkInterfaceId")]
	if nic == nil {
		return lt, nil, fail("InvalidNetworkInterfaceID.NotFound", "The networkInterface ID '"+list[0].str("NetworkInterfaceId")+"' does not exist")
	}
	if nic.Instance != "" {
		return lt, nil, fail("InvalidNetworkInterface.InUse", "Interface: ["+nic.ID+"] in use.")
	}
	lt.SecurityGroups = nic.Groups
	return lt, nic, readTemplateLists(r.p, &lt)
}
