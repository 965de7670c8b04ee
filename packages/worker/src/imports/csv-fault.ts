/** The file is no CSV from some place on. The message is for its owner: the row, and the text that was found there. */
export class CsvFault extends Error {}
