// Texts that programs often get wrong: names that are accepted, and names that are refused. patterns.test.ts also tries
// each character below U+3100.

export type Text = readonly [what: string, text: string]

/** Accepted, and returned unchanged. */
export const acceptedNames: readonly Text[] = [
  ['a letter', 'a'],
  ['an emoji', '🌿'],
  ['emoji joined into one', '\u{1F469}\u{1F3FD}\u200D\u{1F33E}'],
  ['a flag of tags', '\u{1F3F4}\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}'],
  ['a combined letter', 'e\u0301pice\u0301a'],
  ['a combining character alone', '\u0301'],
  ['many combining characters', `a${'\u0300\u0316\u0489'.repeat(40)}`],
  ['Arabic with marks', 'شَجَرَة'],
  ['a direction forced', '\u202Eredla'],
  ['Chinese beyond the first plane', '𠮷野桜'],
  ['ligatures and compatibility', 'ﬁr ① Ａ'],
  ['a zero-width space alone', '\u200B'],
  ['a byte order mark within', 'al\uFEFFder'],
  ['white space around', '  alder\u3000'],
  ['no-break spaces within', 'black\u00A0alder\u202Ftree'],
  ['a line separator within', 'black\u2028alder\u2029tree'],
  ['an ideographic space alone', '\u3000'],
  ['a byte order mark alone', '\uFEFF'],
  ['the replacement character', '\uFFFD'],
  ['noncharacters', '\uFDD0\uFFFE\uFFFF'],
  ['private use', '\uE000\u{F0000}\u{10FFFD}'],
  ['the last code point', '\u{10FFFF}'],
  ['255 letters', 'a'.repeat(255)],
  ['255 characters beyond the first plane', '🌿'.repeat(255)],
  ['255 no-break spaces and letters', '\u00A0a'.repeat(127)],
  ['backslashes', '\\alder\\n\\u0000\\'],
  ['JSON', '{"name":"Alder","tag":null}'],
  ['SQL', `'; DROP TABLE plants; -- `],
  ['HTML', '<script>alert("&amp;")</script>'],
  ['templates', '{{name}} $' + '{name} <%= name %> $(name)'],
  ['a member of every object', '__proto__'],
]

/** Refused for a control character, or for containing only spaces and no-break spaces. */
export const refusedNames: readonly Text[] = [
  ['NUL within', 'al\u0000der'],
  ['a line feed within', 'black\nalder'],
  ['a line feed at the end', 'alder\n'],
  ['DEL', 'alder\u007F'],
  ['the first C1 control', '\u0080alder'],
  ['NEL at the end', 'alder\u0085'],
  ['the last C1 control', '🌿\u009F'],
  ['a space alone', ' '],
  ['spaces and no-break spaces', ' \u00A0\u00A0 '.repeat(20)],
]

/** Refused for their length, which is counted in code points. */
export const namesOfOtherLength: readonly Text[] = [
  ['an empty name', ''],
  ['256 letters', 'a'.repeat(256)],
  ['256 characters beyond the first plane', '🌿'.repeat(256)],
]
