package template

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// The properties of a machine that are no field of a launch template alone: docs/scaling-rules.md
// lists them all.
const (
	PropertyImage  = "image"
	PropertyType   = "instance type"
	PropertySubnet = "subnet"
)

// properties are the fields of a launch template that have a name of their own in a
// cluster.Spec. Every other field is part of "other settings", but for unread.
var properties = map[string]string{
	"ImageId": PropertyImage, "InstanceType": PropertyType, "KeyName": "key pair", "IamInstanceProfile": "IAM instance profile",
	"SecurityGroupIds": "security groups", "SecurityGroups": "security groups", "NetworkInterfaces": "network interfaces",
	"BlockDeviceMappings": "block devices", "MetadataOptions": "metadata options", "Placement": "placement",
}

// unread are the fields that make no other machine.
var unread = map[string]string{
	"UserData":             "compared as a digest without join values",
	"TagSpecifications":    "tags of running machines are changed in place",
	"InstanceRequirements": "the types that meet them are AWS's choice",
	"Operator":             "who manages the launch template",
}

// sourceOf is what one version of a launch template tells of its machines. It compares contents:
// the number of the version is no property, because a new one is made at each rotation of the
// join token (bootstrap/launchtemplate).
func sourceOf(data *ec2types.ResponseLaunchTemplateData) cluster.Spec {
	lists := map[string][]string{"other settings": nil}
	for _, name := range properties {
		lists[name] = nil
	}
	v := reflect.ValueOf(data).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() || unread[field.Name] != "" {
			continue
		}
		if name := properties[field.Name]; name != "" {
			lists[name] = append(lists[name], settings("", v.Field(i))...)
		} else {
			lists["other settings"] = append(lists["other settings"], settings(field.Name, v.Field(i))...)
		}
	}
	if p := data.IamInstanceProfile; p != nil { // by name or by ARN, which ends with the name
		arn := aws.ToString(p.Arn)
		lists["IAM instance profile"] = []string{cmp.Or(aws.ToString(p.Name), arn[strings.LastIndexByte(arn, '/')+1:])}
	}
	out := cluster.Spec{}
	for name, list := range lists {
		slices.Sort(list)
		out[name] = cmp.Or(strings.Join(list, ", "), cluster.Unset)
	}
	if data.InstanceType == "" {
		delete(out, PropertyType)
	}
	if strings.HasPrefix(aws.ToString(data.ImageId), aliasPrefix) {
		delete(out, PropertyImage) // machines have the image that the alias meant when they started
	}
	addUserData(out, aws.ToString(data.UserData))
	return out
}

// addUserData tells what the user data of a launch template does.
func addUserData(to cluster.Spec, encoded string) {
	if encoded == "" {
		to[cluster.PropertyUserData] = cluster.Unset
		return
	}
	text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		text = []byte(encoded)
	}
	maps.Copy(to, userdata.Properties(text))
}

// settings renders a value of the SDK as "Field=value" in an order that does not depend on the
// answer's. What is not set is left out, and so is State, which tells how far EC2 has come.
func settings(at string, v reflect.Value) []string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return settings(at, v.Elem())
	case reflect.Struct:
		if t, ok := v.Interface().(time.Time); ok {
			return []string{at + "=" + t.UTC().Format(time.RFC3339)}
		}
		var out []string
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() && field.Name != "State" {
				out = append(out, settings(strings.TrimPrefix(at+"."+field.Name, "."), v.Field(i))...)
			}
		}
		return out
	case reflect.Slice:
		var out []string
		for i := range v.Len() {
			inner := settings("", v.Index(i))
			slices.Sort(inner)
			out = append(out, strings.Join(inner, " "))
		}
		slices.Sort(out)
		if len(out) > 0 && at != "" {
			return []string{at + "=" + strings.Join(out, "; ")}
		}
		return out
	case reflect.String:
		if v.String() == "" {
			return nil
		}
	}
	if at != "" {
		at += "="
	}
	return []string{fmt.Sprintf("%s%v", at, v.Interface())}
}

// source is what the group's next machine is started from: what each of the launch templates
// tells of which AWS picks one, the types that the group itself names, and its subnets.
func (rs *Resolver) source(d *draft, versions answers) cluster.Spec {
	values := map[string][]string{}
	openType, openImage := false, false
	for _, c := range d.choices {
		t := versions[c.ref].template
		for name, value := range t.source {
			if name != PropertyType && name != PropertyImage {
				values[name] = append(values[name], value)
			}
		}
		image := rs.facts.meant(c.imageID(t))
		openImage = openImage || image == ""
		values[PropertyImage] = append(values[PropertyImage], image)
		typ := cmp.Or(c.typ, string(t.data.InstanceType))
		openType = openType || typ == "" || c.requirements != nil
		values[PropertyType] = append(values[PropertyType], typ)
	}
	if openType {
		delete(values, PropertyType)
	}
	if openImage {
		delete(values, PropertyImage)
	}
	for subnet := range strings.SplitSeq(aws.ToString(d.source.VPCZoneIdentifier), ",") {
		if subnet = strings.TrimSpace(subnet); subnet != "" {
			values[PropertySubnet] = append(values[PropertySubnet], subnet)
		}
	}
	out := make(cluster.Spec, len(values))
	for name, list := range values {
		slices.Sort(list)
		out[name] = strings.Join(slices.Compact(list), "|")
	}
	return out
}
