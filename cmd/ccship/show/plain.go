package show

import (
	"reflect"

	"github.com/ccship/ccship/cmd/ccship/term"
)

// plain returns a copy of an answer whose texts can neither steer a terminal nor begin a line: others wrote them.
func plain[T any](answer T) T {
	v := reflect.New(reflect.TypeFor[T]()).Elem()
	v.Set(reflect.ValueOf(answer))
	clean(v)
	return v.Interface().(T) //nolint:forcetypeassert // it has that type
}

// clean replaces the texts in v. What v points to is copied first.
func clean(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(term.Harmless(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			own := reflect.New(v.Type().Elem())
			own.Elem().Set(v.Elem())
			clean(own.Elem())
			v.Set(own)
		}
	case reflect.Slice:
		if v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8 { // bytes are no text yet
			return
		}
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(own, v)
		for i := range own.Len() {
			clean(own.Index(i))
		}
		v.Set(own)
	case reflect.Map:
		if v.IsNil() {
			return
		}
		own := reflect.MakeMap(v.Type())
		for entries := v.MapRange(); entries.Next(); {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.Set(entries.Key())
			value.Set(entries.Value())
			clean(key)
			clean(value)
			own.SetMapIndex(key, value)
		}
		v.Set(own)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() { // fields of others' types, such as a time's, hold no text
				clean(v.Field(i))
			}
		}
	default:
	}
}
