// Package strict decodes a provider's section of groups.yaml into its struct.
//
// It refuses fields that the struct does not have, and values that YAML took for something else
// than a text (n, no, off, 1.20), each with its place and what to write instead: all of them at
// once, where encoding/json stops at the first and names no place in a list.
package strict

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Decode reads a section; parts names its fields, for who wrote no mapping.
func Decode[T any](raw json.RawMessage, parts string) (T, error) {
	var out T
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return out, err
	}
	if errs := misfits("", tree, reflect.TypeFor[T]()); len(errs) > 0 {
		return out, errors.Join(errs...)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		if typ, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			if typ.Field == "" {
				return out, fmt.Errorf("write a mapping with %s, not a %s", parts, typ.Value)
			}
			return out, fmt.Errorf("%s: write a %s, not a %s", typ.Field, words[typ.Type.Kind()], typ.Value)
		}
		return out, err
	}
	return out, nil
}

var words = map[reflect.Kind]string{reflect.String: "text", reflect.Int: "whole number", reflect.Float64: "number", reflect.Bool: "true or false",
	reflect.Slice: "list", reflect.Map: "mapping", reflect.Struct: "mapping"}

// misfits finds fields that typ does not have, and values that YAML took for something else than a text.
func misfits(at string, v any, typ reflect.Type) (errs []error) {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch v := v.(type) {
	case bool:
		if typ.Kind() != reflect.Bool {
			errs = append(errs, fmt.Errorf("%s: write a %s, not %t: YAML reads n, no and off as false, y, yes and on as true, where no quotes are around them", at, textOr(typ), v))
		}
	case float64:
		if typ.Kind() == reflect.String {
			errs = append(errs, fmt.Errorf("%s: write a text, not the number %v: put quotes around it", at, v))
		}
	case map[string]any:
		if typ.Kind() == reflect.Map {
			for _, key := range slices.Sorted(maps.Keys(v)) {
				errs = append(errs, misfits(at+"."+key, v[key], typ.Elem())...)
			}
		}
		if typ.Kind() != reflect.Struct {
			return errs
		}
		known := map[string]reflect.Type{}
		for i := range typ.NumField() {
			if name := typ.Field(i).Tag.Get("json"); name != "" {
				known[name] = typ.Field(i).Type
			}
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			place := strings.TrimPrefix(at+"."+key, ".")
			if field, ok := known[key]; ok {
				errs = append(errs, misfits(place, v[key], field)...)
				continue
			}
			errs = append(errs, fmt.Errorf("%s: no such field: known are %s", place, strings.Join(slices.Sorted(maps.Keys(known)), ", ")))
		}
	case []any:
		if typ.Kind() != reflect.Slice {
			return nil
		}
		for i, one := range v {
			errs = append(errs, misfits(fmt.Sprintf("%s[%d]", at, i), one, typ.Elem())...)
		}
	}
	return errs
}

// textOr is what a value of the type is written as; some mappings and lists may be a text.
func textOr(typ reflect.Type) string {
	if reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return "text"
	}
	return words[typ.Kind()]
}
