/**
 * Types of the API's calls, all taken from `@sluice/client`.
 *
 * They are of the parameters, the body and the answer of a call. So a change of the API that breaks a screen fails in the compiler.
 */
import type { ApiPath, components, paths } from '@sluice/client';

export type Method = 'get' | 'post' | 'put' | 'delete';

/** The paths that have the method. */
export type PathOf<M extends Method> = {
  [Path in ApiPath]: M extends keyof paths[Path] ? Path : never;
}[ApiPath];

export type Operation<M extends Method, Path extends PathOf<M>> =
  paths[Path] extends Record<M, infer Found> ? Found : never;

/** A number is often still the text of an address. In an address both are the same. */
type InAddress<Value> = Value extends number ? Value | string : Value;

type PathPart<Op> = Op extends { parameters: { path: infer Given } }
  ? { readonly path: { readonly [Name in keyof Given]: InAddress<Given[Name]> } }
  : unknown;

/** A parameter that is undefined is not sent. */
type Query<Given> = { readonly [Name in keyof Given]: InAddress<Given[Name]> | undefined };

type QueryPart<Op> = Op extends { parameters: { query: infer Given } }
  ? { readonly query: Query<Given> }
  : Op extends { parameters: { query?: infer Given } }
    ? 'query' extends keyof Op['parameters']
      ? { readonly query?: Query<NonNullable<Given>> }
      : unknown
    : unknown;

/** A body as it is written: of values that stay, and an optional one may be undefined. */
type Written<Value> = Value extends readonly (infer Part)[]
  ? readonly Written<Part>[]
  : Value extends object
    ? {
        readonly [Name in keyof Value]:
          | Written<Value[Name]>
          | (object extends Pick<Value, Name> ? undefined : never);
      }
    : Value;

type BodyPart<Op> = Op extends { requestBody: { content: { 'application/json': infer Body } } }
  ? { readonly body: Written<Body> }
  : Op extends { requestBody?: { content: { 'application/json': infer Body } } }
    ? 'requestBody' extends keyof Op
      ? { readonly body?: Written<Body> }
      : unknown
    : unknown;

/** The parameters and the body. */
export type GivenOf<Op> = PathPart<Op> & QueryPart<Op> & BodyPart<Op>;

/** A call that ends something has no body in its answer. */
export type Answer<Op> = Op extends {
  responses: { 200: { content: { 'application/json': infer Body } } };
}
  ? Body
  : undefined;

export type AnswerOf<M extends Method, Path extends PathOf<M>> = Answer<Operation<M, Path>>;

export type PathParametersOf<M extends Method, Path extends PathOf<M>> =
  Operation<M, Path> extends { parameters: { path: infer Given } } ? Given : never;

export type QueryOf<Path extends PathOf<'get'>> =
  Operation<'get', Path> extends { parameters: { query?: infer Asked } }
    ? NonNullable<Asked>
    : never;

export type BodyOf<M extends Method, Path extends PathOf<M>> =
  Operation<M, Path> extends { requestBody?: { content: { 'application/json': infer Body } } }
    ? Written<Body>
    : never;

/** The fields of a body as `multipart/form-data`. */
export type FormOf<Path extends PathOf<'post'>> =
  Operation<'post', Path> extends {
    requestBody: { content: { 'multipart/form-data': infer Fields } };
  }
    ? Fields
    : never;

/** An object of the API by its name in the description. */
export type Described<Name extends keyof components['schemas']> = components['schemas'][Name];
